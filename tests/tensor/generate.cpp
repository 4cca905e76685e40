// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/generate.hpp"

#include <doctest/doctest.h>

#include <span>

#include "support.hpp"

namespace test {
namespace {

using Cube = Dims<d0, d1, d2>;
template <class... Ps>
using T = Tensor<double, Cube, On<Ps...>>;

TEST_CASE("the value depends on the global index alone") {
  for (const GridSize size : all_grids) {
    on_grid(size, [](const Rank& rank) {
      const auto check = [&](auto kind, const Extents<Cube>& e) {
        using X = typename decltype(kind)::is;
        std::size_t calls = 0;
        const X x = generate<X>(rank.mesh, e, [&](const Index<Cube>& i) {
          ++calls;
          require(i.at == std::array{i.position<d0>(), i.position<d1>(), i.position<d2>()}, "positions");
          require(i.linear == (i.at[0] * e[1] + i.at[1]) * e[2] + i.at[2], "linear");
          return static_cast<double>(i.linear) + 0.5;
        });
        require(calls == x.local().size(), "one call per local element");
        require_equal(rank.denoted(x), array(x.size(), [](std::size_t i) { return static_cast<double>(i) + 0.5; }),
                      name_of<typename X::layout>());
      };
      for (const Extents<Cube>& extents : {Extents<Cube>{5, 3, 7}, {1, 1, 2}, {0, 2, 3}, {2, 3, 0}}) {
        using detail::type;
        check(type<T<>>{}, extents);
        check(type<T<Shard<d0, dp>, Shard<d2, tp>>>{}, extents);
        check(type<T<Shard<d1, tp, dp>>>{}, extents);
        check(type<T<Shard<d0, Zigzag<tp>>, Shard<d2, Striped<dp>>>>{}, extents);
        check(type<T<Shard<d1, Zigzag<tp>, dp>>>{}, extents);
      }
    });
  }
}

TEST_CASE("runs are the longest that are contiguous in the piece and in the whole") {
  for (const GridSize size : few_grids) {
    on_grid(size, [](const Rank& rank) {
      const auto check = [&](const auto& x, std::size_t least_runs) {
        const auto positions = describe(x).positions();
        std::size_t next = 0, runs = 0;
        detail::for_each_run(x, [&](std::size_t linear, std::size_t local, std::size_t count) {
          require(local == next && count > 0, "in local order");
          for (std::size_t i = 0; i < count; ++i) require(positions[local + i] == linear + i, "positions");
          next += count;
          ++runs;
        });
        require(next == positions.size(), "all of them");
        require(positions.empty() || runs == least_runs, "no more runs than needed");
      };
      const Extents<Cube> extents{5, 3, 4};
      check(T<>(rank.mesh, extents), 1);
      const T<Shard<d0, Zigzag<tp>>> folded(rank.mesh, extents);
      std::size_t pieces = 0;
      const Positions rows = folded.positions<d0>();
      for (const Progression& p : rows.progressions()) pieces += p.step == 1 ? 1 : p.count;
      check(folded, pieces);
      const T<Shard<d0, tp>> outer(rank.mesh, extents);
      check(outer, 1);
      const T<Shard<d1, tp>> middle(rank.mesh, extents);
      check(middle, rank.mesh.size<tp>() == 1 ? 1 : 5);
      const T<Shard<d0, dp>, Shard<d2, tp>> inner(rank.mesh, extents);
      check(inner, rank.mesh.size<tp>() == 1 ? 1 : inner.range<d0>().size * 3);
      check(Tensor<double, Dims<>, On<>>(rank.mesh, {}), 1);
      check(T<Shard<d0, tp>>(rank.mesh, {0, 3, 4}), 0);
    });
  }
}

}  // namespace
}  // namespace test
