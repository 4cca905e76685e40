// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/mean.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "meshwise/tensor/backward.hpp"
#include "meshwise/tensor/value.hpp"
#include "support.hpp"

namespace test {
namespace {

using Square = Dims<d0, d1>;
template <class D, class... Ps>
using T = Tensor<double, D, On<Ps...>>;

template <class X, class... Ds>
concept can_mean = requires(const X& x) {
  mean<Ds...>(x);
};
static_assert(can_mean<T<Square, Shard<d0, tp>>, d0> && can_mean<T<Square, Partial<tp>>, d0, d1>);
static_assert(!can_mean<T<Square, Partial<tp, Max>>, d0>, "the mean of a maximum needs the maximum");
static_assert(!can_mean<Tensor<int, Square, On<>>, d0>, "what would it round to?");
static_assert(!can_mean<T<Square>, hidden> && !can_mean<T<Square>, d0, d0>);

template <class... Ps>
void check(const Rank& rank, std::size_t m, std::size_t n) {
  const auto x = rank.integers<T<Square, Ps...>>({m, n}, 1);
  std::vector<double> rows(m), columns(n);
  double total = 0;
  for (std::size_t i = 0; i < m * n; ++i) {
    rows[i / n] += integer(i, 1) / static_cast<double>(n);
    columns[i % n] += integer(i, 1) / static_cast<double>(m);
    total += integer(i, 1) / static_cast<double>(m * n);
  }
  require_close(rank.denoted(mean<d1>(x)), rows, 1e-14, "of rows");
  require_close(rank.denoted(mean<d0>(x)), columns, 1e-14, "of columns");
  require_close(rank.denoted(mean<d0, d1>(x)), {total}, 1e-14, "of all");
  require_close(rank.denoted(mean<d1>(mean<d0>(x))), {total}, 1e-14, "one dim after the other");
  require_equal(rank.denoted(mean<>(x)), array(m * n, [](std::size_t i) { return integer(i, 1); }), "over nothing");
}

TEST_CASE("by the global count, over layouts, uneven and empty parts") {
  for (const GridSize size : few_grids) {
    on_grid(size, [](const Rank& rank) {
      Draw draw(31);
      for (int i = 0; i < 8; ++i) {
        const std::size_t m = draw.size(), n = draw.size();
        if (m * n == 0) continue;
        check<>(rank, m, n);
        check<Shard<d0, dp>, Shard<d1, tp>>(rank, m, n);
        check<Shard<d0, tp, dp>>(rank, m, n);
        check<Shard<d0, Chunked<tp>, Zigzag<dp>>>(rank, m, n);
        check<Shard<d1, dp>, Partial<tp>>(rank, m, n);
        check<Partial<dp>, Partial<tp>>(rank, m, n);
      }
    });
  }
}

TEST_CASE("an average of averages would be wrong: five elements over two ranks") {
  on_grid({1, 2}, [](const Rank& rank) {
    const auto x = rank.fill<T<Dims<d0>, Shard<d0, tp>>>({5}, [](std::size_t i) { return i < 2 ? 10.0 : 0.0; });
    const auto m = mean<d0>(x);
    static_assert(std::is_same_v<std::remove_const_t<decltype(m)>, T<Dims<>, Partial<tp>>>);
    require(value(convert<Replicate<tp>>(m)) == 4, "not (10 + 0) / 2");
    // The gradient of the mean is 1 / 5 everywhere, whatever each rank holds.
    require(gradient_seed(m).local()[0] == 1, "its seed");
  });
}

TEST_CASE("nothing has the mean NaN; no rows have none") {
  on_grid({1, 3}, [](const Rank& rank) {
    const T<Square, Shard<d0, tp>> x(rank.mesh, {0, 2});
    require(std::isnan(convert<Replicate<tp>>(mean<d0>(x)).local()[0]), "of nothing");
    require(mean<d1>(x).size() == 0, "no rows");
  });
}

TEST_CASE("narrow floats are summed and divided wide, and rounded once") {
  on_grid({1, 1}, [](const Rank& rank) {
    using B = Tensor<bf16, Dims<d0>, On<>>;
    const auto x = rank.fill<B>({1000}, [](std::size_t i) { return i == 0 ? 2.0 : 1.0; });
    require_equal(rank.denoted(mean<d0>(x)), {1.0}, "1001 / 1000: a sum rounded to bf16 would be 1000 or 1004");
    const auto y = rank.fill<B>({3}, [](std::size_t i) { return i == 0 ? 1.0 : 0.0; });
    require_equal(rank.denoted(mean<d0>(y)), {static_cast<double>(static_cast<float>(bf16(1.0F / 3.0F)))}, "a third");
  });
}

}  // namespace
}  // namespace test
