// SPDX-License-Identifier: Apache-2.0
#include "meshwise/layout/layout_value.hpp"

#include <doctest/doctest.h>

namespace {

using namespace meshwise;

using Grid = Mesh<dp, cp, tp>;
template <class... Ps>
inline constexpr LayoutValue of = layout_value<Layout<Grid, Ps...>, Dims<batch, seq, hidden>>;

// Axes are numbered as in the mesh, dims as in the tensor.
static_assert(of<>.axes == 3 && of<>.dims == 3);
constexpr const LayoutValue& busy = of<Shard<seq, Zigzag<tp>, dp>, Partial<cp, Max>>;
static_assert(busy.is(0, PlacementKind::shard) && busy.is(1, PlacementKind::partial) &&
              busy.is(2, PlacementKind::shard));
static_assert(busy.dim[0] == 1 && busy.dim[2] == 1 && busy.split[1] == 2 && busy.split[0] == 0);
static_assert(busy.order[1][0] == 2 && busy.order[1][1] == 0);
static_assert(busy.rule[2] == SplitRule::zigzag && busy.rule[0] == SplitRule::contiguous);
static_assert(busy.op[1] == ReductionKind::max);

// Equal layouts are equal values, and only they.
static_assert(of<> == of<Replicate<tp>> && of<Shard<seq, dp, tp>> == of<Shard<seq, dp, tp>, Replicate<cp>>);
static_assert(of<Shard<seq, dp, tp>> != of<Shard<seq, tp, dp>> && of<Shard<seq, dp>> != of<Shard<batch, dp>>);
static_assert(of<Shard<seq, dp>> != of<Shard<seq, Chunked<dp>>> && of<Partial<dp>> != of<Partial<dp, Max>>);
static_assert(of<Partial<dp>> != of<> && of<Shard<seq, dp>> != of<Shard<seq, cp>>);
// Which dims there are makes a difference, though not what they are called.
static_assert(layout_value<Layout<Grid>, Dims<seq>> != layout_value<Layout<Grid>, Dims<seq, batch>>);
static_assert(layout_value<Layout<Grid>, Dims<seq>> == layout_value<Layout<Grid>, detail::list<batch>>);

// The list has all dims that the layout shards, each a dim, and not too many of them.
using L = Layout<Grid, Shard<seq, dp>>;
static_assert(DimsFor<Dims<seq>, L> && DimsFor<Dims<batch, seq>, L> && DimsFor<detail::list<seq>, L>);
static_assert(!DimsFor<Dims<batch>, L> && !DimsFor<Dims<>, L> && !DimsFor<detail::list<seq, tp>, L> &&
              !DimsFor<int, L>);
template <int i>
struct numbered : dim {};
static_assert(!DimsFor<Dims<numbered<0>, numbered<1>, numbered<2>, numbered<3>, numbered<4>, numbered<5>, numbered<6>,
                            numbered<7>, numbered<8>, numbered<9>, numbered<10>, numbered<11>, seq>,
                       L>);

constexpr LayoutValue edited() {
  LayoutValue l = busy;
  l.replicate(2);  // the minor axis moves up
  l.replicate(1);
  l.owe(1, ReductionKind::sum);
  l.shard(2, 0, SplitRule::striped);
  return l;
}
static_assert(edited() == of<Shard<seq, dp>, Partial<cp>, Shard<batch, Striped<tp>>>);
constexpr LayoutValue moved() {
  LayoutValue l = of<Shard<seq, dp, cp, tp>>;
  l.replicate(1);
  l.shard(1, 1);
  return l;
}
static_assert(moved() == of<Shard<seq, dp, tp, cp>>);
constexpr LayoutValue undone() {
  LayoutValue l = of<>;
  l.shard(1, 2, SplitRule::zigzag);
  l.replicate(1);
  l.owe(0, ReductionKind::max);
  l.replicate(0);
  return l;
}
static_assert(undone() == of<>);

TEST_CASE("layout values: checked when this file is compiled") { CHECK(busy == busy); }

}  // namespace
