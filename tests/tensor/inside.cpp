// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/inside.hpp"

#include <doctest/doctest.h>

#include "support.hpp"

namespace test {
namespace {

using Square = Dims<d0, d1>;
template <class... Ps>
using T = Tensor<double, Square, On<Ps...>>;
template <class Mesh, class... Ps>
using In = Tensor<double, Square, Layout<Mesh, Ps...>>;

template <class X, class A>
inline constexpr bool allowed = detail::is_accepted<detail::inside_of<X, A>>;
static_assert(allowed<T<Shard<d0, tp>>, tp> && allowed<T<Shard<d0, dp, tp>>, cp> == false);
static_assert(!allowed<T<Shard<d0, dp, tp>>, tp> && !allowed<T<Shard<d0, dp, tp>>, dp>);

/// Leaves axis A and claims it back as it was.
template <class P, class X>
void round_trip(const Rank& rank, const X& x, std::size_t extent) {
  using A = detail::front<detail::axes_of<P>>;
  const auto y = inside<A>(x);
  require(y.local().data() == x.local().data() && y.local().size() == x.local().size(), "the same storage");
  const X back = outside<P>(rank.mesh, y, extent);
  require(back.extents() == x.extents() && back.ranges() == x.ranges(), "the same piece");
  require(back.local().data() == x.local().data(), "the same storage");
  require_equal(rank.denoted(back), rank.denoted(x), "the same value");
}

TEST_CASE("inside and outside are each other's inverse") {
  for (const GridSize size : few_grids) {
    on_grid(size, [](const Rank& rank) {
      for (const Extents<Square>& extents : {Extents<Square>{5, 7}, {2, 1}, {0, 3}, {3, 0}}) {
        const auto two = rank.integers<T<Shard<d0, dp>, Shard<d1, tp>>>(extents);
        round_trip<Shard<d0, dp>>(rank, two, extents[0]);
        round_trip<Shard<d1, tp>>(rank, two, extents[1]);
        const auto mixed = rank.integers<T<Shard<d0, dp>, Partial<tp>>>(extents);
        round_trip<Partial<tp>>(rank, mixed, 0);
        round_trip<Replicate<tp>>(rank, rank.integers<T<Shard<d0, dp>>>(extents), 0);
        round_trip<Replicate<dp>>(rank, rank.integers<T<Shard<d0, tp>>>(extents), 0);
      }
    });
  }
}

TEST_CASE("other rules: parts count their own indices inside, and say their sizes when they are Counted") {
  for (const GridSize size : few_grids) {
    on_grid(size, [](const Rank& rank) {
      const auto folded = rank.integers<T<Shard<d0, Zigzag<dp>>, Shard<d1, Striped<tp>>>>({7, 5});
      round_trip<Shard<d0, Zigzag<dp>>>(rank, folded, 7);
      round_trip<Shard<d1, Striped<tp>>>(rank, folded, 5);
      require(inside<dp>(folded).extents()[0] == folded.ranges()[0].size, "its own indices");

      const auto n = static_cast<std::size_t>(rank.mesh.size<tp>());
      std::vector<std::size_t> counts(n, 0);
      counts[0] = 2;
      counts[n - 1] += 4;
      using Routed = T<Shard<d0, Counted<tp>>, Shard<d1, dp>>;
      const Routed routed = rank.integers<Routed>({Extent::of_parts(counts), 3});
      const Traffic before = rank.mesh.along<tp>().traffic();
      round_trip<Shard<d0, Counted<tp>>>(rank, routed, 0);
      require((rank.mesh.along<tp>().traffic() - before).calls == 1, "one all_gather of the sizes");
      const auto own = inside<tp>(routed);
      require(contains(error_of([&] { (void)outside<Shard<d0, Counted<tp>>>(rank.mesh, own, 9); }),
                       "expected 9 indices, the global extent that was passed, found 6 in all parts"),
              "another extent");
      // Leaving another axis keeps the counts.
      require(inside<dp>(routed).extents()[0] == routed.extents()[0], "counts");
    });
  }
}

TEST_CASE("inside, a tensor is this coordinate's own on the axes that remain") {
  for (const GridSize size : few_grids) {
    on_grid(size, [](const Rank& rank) {
      const auto x = rank.integers<T<Shard<d0, dp>, Shard<d1, tp>>>({5, 7});
      const In<Mesh<tp>, Shard<d1, tp>> y = inside<dp>(x);
      require(y.mesh() == rank.mesh.without<dp>(), "mesh");
      require(y.extent<d0>() == x.range<d0>().size && y.extent<d1>() == 7, "extents");
      // A conversion there communicates along the other axis only.
      const Traffic before = rank.mesh.along<dp>().traffic();
      const In<Mesh<tp>> row = convert<Replicate<tp>>(y);
      require(rank.mesh.along<dp>().traffic() == before, "no traffic along dp");
      for (std::size_t i = 0; i < row.local().size(); ++i) {
        require(row.local()[i] == integer((x.range<d0>().begin + i / 7) * 7 + i % 7, 1), "value");
      }
      const auto local = inside<tp>(y);
      require(local.size() == x.local().size() &&
                  local.extents() == Extents<Square>{x.range<d0>().size, x.range<d1>().size},
              "no axes are left");
      auto scaled = inside<tp>(y);
      for (double& value : scaled.mutable_local()) value *= 2;
      require(std::equal(x.local().begin(), x.local().end(), local.local().begin()), "copied on write");
      const auto claimed =
          outside<Shard<d0, dp>>(rank.mesh, outside<Shard<d1, tp>>(rank.mesh.without<dp>(), scaled, 7), 5);
      static_assert(std::is_same_v<std::remove_const_t<decltype(claimed)>, T<Shard<d0, dp>, Shard<d1, tp>>>);
      require_equal(rank.denoted(claimed), array(35, [](std::size_t i) { return 2 * integer(i, 1); }), "claimed");
    });
  }
}

TEST_CASE("what each rank made may be claimed as a sum") {
  on_grid({2, 3}, [](const Rank& rank) {
    Tensor<double, Dims<>, Layout<Mesh<dp>>> mine(rank.mesh.without<tp>(), {});
    mine.mutable_local()[0] = 1 + rank.mesh.coordinate<tp>();
    const auto sum = outside<Partial<tp>>(rank.mesh, mine);
    require_equal(rank.denoted(sum), {6}, "sum");
    require(convert<Replicate<tp>>(sum).local()[0] == 6, "reduced");
    require_equal(rank.denoted(outside<Partial<tp, Max>>(rank.mesh, mine)), {3}, "maximum");
  });
}

TEST_CASE("a part that the split rule does not give is an error") {
  on_grid({1, 2}, [](const Rank& rank) {
    const auto y = inside<tp>(rank.integers<T<Shard<d0, tp>>>({5, 2}));
    const std::string text = error_of([&] { static_cast<void>(outside<Shard<d0, tp>>(rank.mesh, y, 9)); });
    const bool first = rank.mesh.coordinate<tp>() == 0;
    require(contains(text, "outside (rank "), text);
    require(contains(text, first ? "expected 4 indices, this rank's part of 9, found 2"
                                 : "expected 5 indices, this rank's part of 9, found 3"),
            text);
    const Grid other(rank.mesh.world(), {1, 2});
    require(contains(error_of([&] { static_cast<void>(outside<Shard<d0, tp>>(other, y, 5)); }),
                     "without the axis tp, found one of another"),
            "mesh");
  });
}

}  // namespace
}  // namespace test
