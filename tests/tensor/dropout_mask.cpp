// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/dropout_mask.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>

#include "support.hpp"

namespace test {
namespace {

using Cube = Dims<d0, d1, d2>;
template <class E, class... Ps>
using T = Tensor<E, Cube, On<Ps...>>;

template <class X>
void check_mask(const Rank& rank, const Extents<Cube>& extents) {
  const auto x = rank.reals<X>(extents);
  for (const double p : {0.0, 0.3, 0.9}) {
    const auto mask = dropout_mask(x, p, 42);
    static_assert(std::is_same_v<decltype(mask), const Tensor<std::uint8_t, Cube, typename X::layout>>);
    const X drawn = dropout(x, p, 42), kept = dropout(x, p, mask);
    const auto a = drawn.local(), b = kept.local();
    require(a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0), "same bits");
    for (std::size_t i = 0; i < a.size(); ++i) {
      require(mask.local()[i] <= 1 && (mask.local()[i] == 1 || static_cast<float>(a[i]) == 0), "ones and zeros");
    }
    X own = x;
    own.mutable_local();
    const auto* where = own.local().data();
    const X moved = dropout(std::move(own), p, mask);
    require(a.empty() || moved.local().data() == where, "an rvalue is written in place");
  }
}

TEST_CASE("a mask that is kept gives the bits that drawing again gives, whatever the layout") {
  for (const GridSize size : all_grids) {
    on_grid(size, [](const Rank& rank) {
      for (const Extents<Cube>& extents : {Extents<Cube>{5, 3, 7}, {1, 2, 1}, {3, 0, 2}, {2, 2, 150}}) {
        check_mask<T<float>>(rank, extents);
        check_mask<T<float, Shard<d2, tp>, Shard<d1, dp>>>(rank, extents);
        check_mask<T<bf16, Shard<d1, Zigzag<tp>>, Shard<d2, Striped<dp>>>>(rank, extents);
      }
    });
  }
}

TEST_CASE("a dropped NaN is dropped, and other extents and probabilities are refused") {
  on_grid({1, 1}, [](const Rank& rank) {
    const auto nan =
        rank.fill<T<float>>({1, 1, 64}, [](std::size_t) { return std::numeric_limits<double>::quiet_NaN(); });
    const auto mask = dropout_mask(nan, 0.5, 1);
    const auto y = dropout(nan, 0.5, mask);
    for (std::size_t i = 0; i < 64; ++i) {
      require((y.local()[i] == 0) == (mask.local()[i] == 0), "a NaN where the mask says so, else 0");
    }
    const auto refused = [&](const auto& call, const char* text) {
      try {
        call();
        require(false, "refused");
      } catch (const Error& e) {
        require(std::string(e.what()).find(text) != std::string::npos, e.what());
      }
    };
    refused([&] { static_cast<void>(dropout_mask(nan, 1.0, 1)); }, "a probability in [0, 1)");
    refused([&] { static_cast<void>(dropout(nan, -0.1, mask)); }, "a probability in [0, 1)");
    const auto other = rank.fill<T<float>>({1, 1, 63}, [](std::size_t) { return 1.0; });
    refused([&] { static_cast<void>(dropout(other, 0.5, mask)); }, "63");
  });
}

}  // namespace
}  // namespace test
