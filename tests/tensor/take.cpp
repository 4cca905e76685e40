// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/take.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "meshwise/tensor/accumulate.hpp"
#include "meshwise/tensor/convert.hpp"
#include "meshwise/tensor/rename.hpp"
#include "support.hpp"

namespace test {
namespace {

struct qkv : dim {};
struct part : dim {};

using Box = Dims<d0, d1, d2>;
template <class... Ps>
using T = Tensor<double, Box, On<Ps...>>;

template <class X, class D>
concept can_take = requires(const X& x) {
  requires AnyTensor<decltype(take<D>(x, Range{0, 1}))>;
  requires AnyTensor<decltype(take<D>(x, 0))>;
};
static_assert(can_take<T<Shard<d0, tp>>, d1> && !can_take<T<Shard<d0, tp>>, d0> && !can_take<T<>, qkv>);
static_assert(can_take<T<Partial<tp>>, d0> && can_take<T<Partial<tp, Max>>, d2>);
static_assert(!can_take<T<Shard<d1, Zigzag<tp>>>, d1>);

/// Whatever the layout, taking is what it is on the whole array; x is as it was.
template <class D, class X>
void check_taken(const Rank& rank, const Extents<Box>& extents) {
  constexpr std::size_t d = detail::dim_index<D, X>;
  const X x = rank.integers<X>(extents);
  const std::size_t n = extents[d];
  std::size_t inner = 1, outer = 1;
  for (std::size_t i = 0; i < 3; ++i) (i < d ? outer : inner) *= i == d ? 1 : extents[i].size();
  const auto expected = [&](const Range& range) {
    std::vector<double> result;
    for (std::size_t o = 0; o < outer; ++o) {
      for (std::size_t i = range.begin * inner; i < range.end() * inner; ++i) {
        result.push_back(integer(o * n * inner + i, 1));
      }
    }
    return result;
  };
  for (std::size_t begin = 0; begin <= n; ++begin) {
    for (std::size_t size = 0; begin + size <= n; size += size == 0 || n < 5 ? 1 : 2) {
      const Range range{begin, size};
      auto y = take<D>(x, range);
      static_assert(std::is_same_v<decltype(y), X>);
      require(y.extents()[d] == size, "extent");
      require_equal(rank.denoted(y), expected(range), "range");
      if (outer == 1 || y.local().empty() || size == n) {
        require(y.local().empty() || (y.local().data() >= x.local().data() &&
                                      y.local().data() + y.local().size() <= x.local().data() + x.local().size()),
                "shared");
      }
      for (double& value : y.mutable_local()) value += 1;  // seen by nobody else
    }
    require_equal(rank.denoted(x), array(x.size(), [](std::size_t i) { return integer(i, 1); }), "unchanged");
    if (begin == n) break;
    const auto one = take<D>(x, begin);
    static_assert(decltype(one)::rank == 2 && std::is_same_v<typename decltype(one)::layout, typename X::layout>);
    require_equal(rank.denoted(one), expected({begin, 1}), "one");
  }
}

TEST_CASE("ranges and single indices of a dim that is whole, for every place of the dim and every layout") {
  for (const GridSize size : few_grids) {
    on_grid(size, [](const Rank& rank) {
      for (const Extents<Box>& extents : {Extents<Box>{3, 4, 2}, {1, 5, 3}, {2, 1, 1}, {0, 3, 2}, {3, 2, 0}}) {
        check_taken<d0, T<Shard<d1, tp>>>(rank, extents);
        check_taken<d1, T<Shard<d0, dp>, Shard<d2, Zigzag<tp>>>>(rank, extents);
        check_taken<d2, T<Shard<d0, tp, dp>>>(rank, extents);
        check_taken<d1, T<Partial<tp>>>(rank, extents);
        check_taken<d2, T<Partial<tp, Max>>>(rank, extents);
      }
    });
  }
}

TEST_CASE("indices outside of the dim are errors that name it") {
  on_grid({1, 1}, [](const Rank& rank) {
    const T<> x(rank.mesh, {2, 3, 1});
    const auto text = [&](const Range& range) { return error_of([&] { static_cast<void>(take<d1>(x, range)); }); };
    require(contains(text({2, 2}), "take (rank 0): expected indices of test::d1 below its extent 3, found 2 from 2 on"),
            text({2, 2}));
    for (const Range& range : {Range{0, 4}, {4, 0}, {~std::size_t{0}, 2}, {1, ~std::size_t{0}}}) {
      require(!text(range).empty(), "outside");
    }
    require(text({3, 0}).empty(), "empty at the end");
    require(!error_of([&] { static_cast<void>(take<d1>(x, 3)); }).empty(), "index");
  });
}

TEST_CASE("the gradient goes back to where it was taken: the adjoint law, and the parts together are everything") {
  for (const GridSize size : few_grids) {
    on_grid(size, [](const Rank& rank) {
      using X = T<Shard<d0, dp>, Shard<d2, tp>>;
      const X x = rank.integers<X>({3, 4, 5}), y = rank.integers<X>({3, 4, 5}, 2);
      const auto dot = [&](const auto& a, const auto& b) {
        double sum = 0;
        for (std::size_t i = 0; i < a.local().size(); ++i) sum += a.local()[i] * b.local()[i];
        return rank.total(sum);
      };
      const Range range{1, 2};
      require(dot(take<d1>(x, range), take<d1>(y, range)) == dot(x, take_backward<d1>(take<d1>(y, range), x, range)),
              "range");
      require(dot(take<d1>(x, 3), take<d1>(y, 3)) == dot(x, take_backward<d1>(take<d1>(y, 3), x, 3)), "index");
      auto all = take_backward<d1>(take<d1>(x, Range{0, 1}), x, Range{0, 1});
      all += take_backward<d1>(take<d1>(x, range), x, range);
      all += take_backward<d1>(take<d1>(x, 3), x, 3);
      require_equal(rank.denoted(all), rank.denoted(x), "all parts");

      // A gradient may be owed where the value was not.
      const auto owed = rank.integers<T<Partial<dp>, Shard<d2, tp>>>({3, 2, 5});
      const auto back = take_backward<d1>(owed, x, range);
      static_assert(std::is_same_v<std::remove_const_t<decltype(back)>, T<Partial<dp>, Shard<d2, tp>>>);
      require_equal(rank.denoted(take<d1>(back, range)), rank.denoted(owed), "owed");
      require(contains(error_of([&] {
                         static_cast<void>(take_backward<d1>(owed, x, Range{0, 3}));
                       }),
                       "as were taken"),
              "another size");
    });
  }
}

TEST_CASE("a gradient of other extents is an error, also of as many elements as were taken") {
  on_grid({1, 2}, [](const Rank& rank) {
    using X = T<Shard<d2, tp>>;
    const X x(rank.mesh, {3, 4, 4});
    const auto text = [&](const Extents<X::dims>& extents) {
      return error_of([&] { static_cast<void>(take_backward<d1>(X(rank.mesh, extents), x, Range{1, 2})); });
    };
    require(text({3, 2, 4}).empty(), "the extents that take gave");
    require(contains(text({2, 3, 4}), "take_backward") && contains(text({2, 3, 4}), "d0 = 3"), text({2, 3, 4}));
    require(contains(text({6, 1, 4}), "d0 = 3") && contains(text({3, 4, 2}), "d2 = 4"), text({3, 4, 2}));
    require(contains(text({3, 3, 4}), "expected 2 indices of test::d1, as many as were taken, found 3"),
            text({3, 3, 4}));
    const Grid other(rank.mesh.world(), {1, 2});
    require(contains(error_of([&] {
                       static_cast<void>(take_backward<d1>(X(other, {3, 2, 4}), x, Range{1, 2}));
                     }),
                     "two meshes"),
            "mesh");
  });
}

TEST_CASE("a gradient that is cut by counts goes back with them") {
  on_grid({1, 3}, [](const Rank& rank) {
    const auto x = rank.integers<T<>>({5, 4, 2});
    const std::vector<std::size_t> counts{4, 0, 1};
    const auto dy = convert<Shard<d0, Counted<tp>>>(take<d1>(x, Range{1, 2}), counts);
    const auto dx = take_backward<d1>(dy, x, Range{1, 2});
    require(dx.extents()[0] == Extent::of_parts(counts), "counts");
    require_equal(rank.denoted(dx), rank.denoted(take_backward<d1>(take<d1>(x, Range{1, 2}), x, Range{1, 2})), "value");
  });
}

TEST_CASE("a fused weight is cut by its parts, not across them, also when they have different sizes") {
  for (const GridSize size : {GridSize{1, 2}, {1, 3}, {2, 2}}) {
    on_grid(size, [](const Rank& rank) {
      // 6 query heads and 3 of keys and of values each, 2 columns: a split of the whole over ranks would mix them.
      const auto fused = rank.integers<Tensor<double, Dims<qkv, d1>, On<>>>({12, 2});
      const auto q = convert<Shard<heads, tp>>(rename<qkv, heads>(take<qkv>(fused, Range{0, 6})));
      const auto k = convert<Shard<kv, tp>>(rename<qkv, kv>(take<qkv>(fused, Range{6, 3})));
      const auto v = convert<Shard<kv, tp>>(rename<qkv, kv>(take<qkv>(fused, Range{9, 3})));
      const auto rows = [](std::size_t begin, std::size_t n) {
        return array(2 * n, [begin](std::size_t i) { return integer(2 * begin + i, 1); });
      };
      require_equal(rank.denoted(q), rows(0, 6), "queries");
      require_equal(rank.denoted(k), rows(6, 3), "keys");
      require_equal(rank.denoted(v), rows(9, 3), "values");

      // Parts of one size are a dim of their own, and the heads in them may be sharded.
      const auto equal = rank.integers<Tensor<double, Dims<part, heads>, On<Shard<heads, tp>>>>({3, 4});
      require_equal(rank.denoted(take<part>(equal, 1)), array(4, [](std::size_t i) { return integer(4 + i, 1); }),
                    "keys");
    });
  }
}

}  // namespace
}  // namespace test
