// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/dropout.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "support.hpp"

namespace test {
namespace {

using Cube = Dims<d0, d1, d2>;
template <class E, class... Ps>
using T = Tensor<E, Cube, On<Ps...>>;

double dropped(std::size_t i, double value, double p, std::uint64_t seed) {
  return uniform(seed, i) < p ? 0.0 : value * (1.0 / (1.0 - p));
}

TEST_CASE("the mask is a function of seed and global position, whatever the layout") {
  for (const GridSize size : all_grids) {
    on_grid(size, [](const Rank& rank) {
      const auto check = [&](auto kind, const Extents<Cube>& extents) {
        using X = typename decltype(kind)::is;
        const auto x = rank.integers<X>(extents);
        const auto wanted = array(x.size(), [](std::size_t i) { return dropped(i, integer(i, 1), 0.25, 42); });
        require_close(rank.denoted(dropout(x, 0.25, 42)), wanted, 1e-14, name_of<typename X::layout>());
      };
      for (const Extents<Cube>& extents : {Extents<Cube>{5, 3, 7}, {1, 2, 1}, {3, 0, 2}, {2, 2, 150}}) {
        using detail::type;
        check(type<T<double>>{}, extents);
        check(type<T<double, Shard<d0, dp>, Shard<d1, tp>>>{}, extents);
        check(type<T<double, Shard<d2, tp>, Shard<d1, dp>>>{}, extents);
        check(type<T<double, Shard<d2, tp, dp>>>{}, extents);
        check(type<T<double, Shard<d0, dp>, Partial<tp>>>{}, extents);
        check(type<T<double, Shard<d1, Zigzag<tp>>, Shard<d2, Striped<dp>>>>{}, extents);
      }
    });
  }
}

TEST_CASE("a fraction p is dropped, and the expectation stays") {
  on_grid({1, 2}, [](const Rank& rank) {
    const std::size_t n = 100000;
    const auto ones = rank.fill<T<float, Shard<d0, tp>>>({n, 1, 1}, [](std::size_t) { return 1.0; });
    for (const double p : {0.1, 0.5, 0.9}) {
      double zeros = 0, sum = 0;
      for (const double value : rank.denoted(dropout(ones, p, 7))) {
        zeros += value == 0;
        sum += value;
      }
      const double deviation = std::sqrt(p * (1 - p) / static_cast<double>(n));
      require(std::fabs(zeros / static_cast<double>(n) - p) < 5 * deviation, "rate");
      require(std::fabs(sum / static_cast<double>(n) - 1) < 5 * deviation / (1 - p), "mean");
    }
    const auto a = rank.denoted(dropout(ones, 0.5, 1)), b = rank.denoted(dropout(ones, 0.5, 2));
    double both = 0;
    for (std::size_t i = 0; i < n; ++i) both += a[i] != 0 && b[i] != 0;
    require(std::fabs(both / static_cast<double>(n) - 0.25) < 0.01, "masks of two seeds are independent");
  });
}

TEST_CASE("it is linear and its own backward") {
  on_grid({1, 2}, [](const Rank& rank) {
    using X = T<double, Shard<d1, tp>>;
    const auto x = rank.reals<X>({3, 4, 5}, 1), g = rank.reals<X>({3, 4, 5}, 2);
    const auto y = rank.denoted(dropout(x, 0.3, 9)), back = rank.denoted(dropout(g, 0.3, 9));
    const auto vx = rank.denoted(x), vg = rank.denoted(g);
    double forward = 0, backward = 0;
    for (std::size_t i = 0; i < vx.size(); ++i) {
      forward += y[i] * vg[i];
      backward += vx[i] * back[i];
    }
    require(std::fabs(forward - backward) < 1e-12, "<f(x), g> = <x, f(g)>");
  });
}

TEST_CASE("p = 0 is an alias, an rvalue is written in place, other probabilities are errors") {
  on_grid({1, 1}, [](const Rank& rank) {
    auto x = rank.integers<T<bf16>>({2, 3, 4});
    require(dropout(x, 0.0, 1).local().data() == x.local().data(), "nothing to drop");
    const auto y = dropout(x, 0.5, 1);
    require_close(rank.denoted(y), array(24, [](std::size_t i) { return dropped(i, integer(i, 1), 0.5, 1); }), 0,
                  "bf16");
    require_equal(rank.denoted(x), array(24, [](std::size_t i) { return integer(i, 1); }), "an lvalue is left alone");
    const bf16* where = x.local().data();
    require(dropout(std::move(x), 0.5, 1).local().data() == where, "in place");
    for (const double p : {1.0, -0.1, 1.5, std::nan("")}) {
      const std::string text = error_of([&] { static_cast<void>(dropout(y, p, 1)); });
      require(contains(text, "dropout") && contains(text, "[0, 1)"), text);
    }
  });
}

}  // namespace
}  // namespace test
