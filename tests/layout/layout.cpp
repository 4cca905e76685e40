// SPDX-License-Identifier: Apache-2.0
#include "meshwise/layout/layout.hpp"

#include <doctest/doctest.h>

namespace {

using namespace meshwise;
using namespace meshwise::detail;

using Grid = Mesh<dp, cp, tp>;
template <class A, class B>
inline constexpr bool same = std::is_same_v<A, B>;

// Equal layouts are the same type, however they are spelled.
static_assert(same<Layout<Grid>, Layout<Grid, Replicate<dp>, Replicate<tp>>>);
static_assert(same<Layout<Grid>, Layout<Grid, Shard<seq>>>);
static_assert(same<Layout<Grid, Shard<batch, dp>, Partial<tp>>, Layout<Grid, Partial<tp>, Shard<batch, dp>>>);
static_assert(
    same<Layout<Grid, Shard<batch, dp>, Partial<tp>>, Layout<Grid, Partial<tp>, Replicate<cp>, Shard<batch, dp>>>);
static_assert(
    same<Layout<Grid, Shard<seq, tp, dp>, Shard<batch, cp>>, Layout<Grid, Shard<batch, cp>, Shard<seq, tp, dp>>>);

// Order of the axes of one dim, reduction, dim, axis and mesh make a difference.
static_assert(!same<Layout<Grid, Shard<batch, dp, tp>>, Layout<Grid, Shard<batch, tp, dp>>>);
static_assert(!same<Layout<Grid, Partial<tp>>, Layout<Grid, Partial<tp, Max>>>);
static_assert(!same<Layout<Grid, Shard<batch, tp>>, Layout<Grid, Shard<seq, tp>>>);
static_assert(!same<Layout<Grid, Shard<batch, tp>>, Layout<Grid, Shard<batch, dp>>>);
static_assert(!same<Layout<Mesh<tp>>, Layout<Mesh<dp>>> && !same<Layout<Mesh<dp, tp>>, Layout<Mesh<tp, dp>>>);

// So does the split rule, of each axis.
static_assert(!same<Layout<Grid, Shard<seq, Zigzag<cp>>>, Layout<Grid, Shard<seq, cp>>>);
static_assert(!same<Layout<Grid, Shard<seq, Zigzag<cp>>>, Layout<Grid, Shard<seq, Striped<cp>>>>);
static_assert(!same<Layout<Grid, Shard<seq, Zigzag<cp>, tp>>, Layout<Grid, Shard<seq, cp, Zigzag<tp>>>>);
static_assert(
    same<Layout<Grid, Shard<seq, Zigzag<cp>, tp>, Partial<dp>>, Layout<Grid, Partial<dp>, Shard<seq, Zigzag<cp>, tp>>>);

using L = Layout<Grid, Shard<seq, tp, dp>, Partial<cp, Max>>;
static_assert(same<placement_of<L, tp>, Shard<seq, tp, dp>> && same<placement_of<L, dp>, Shard<seq, tp, dp>>);
static_assert(same<placement_of<L, cp>, Partial<cp, Max>>);
static_assert(same<placement_of<Layout<Grid, Shard<seq, tp>>, dp>, Replicate<dp>>);
static_assert(same<shard_axes<L, seq>, list<tp, dp>> && same<shard_axes<L, batch>, list<>>);
static_assert(same<axes_of_layout<L>, list<dp, cp, tp>> && same<grid_of<L>, Grid>);
// Placements stand in the order of their major axes in the mesh.
static_assert(same<placements_of<L>, list<Partial<cp, Max>, Shard<seq, tp, dp>>>);

using Z = Layout<Grid, Shard<seq, Zigzag<tp>, dp>>;
static_assert(same<placement_of<Z, tp>, Shard<seq, Zigzag<tp>, dp>> && same<placement_of<Z, dp>, placement_of<Z, tp>>);
static_assert(same<shard_axes<Z, seq>, list<tp, dp>> && same<shard_entries<Z, seq>, list<Zigzag<tp>, dp>>);
static_assert(same<shard_of<Z, seq>, Shard<seq, Zigzag<tp>, dp>> && same<shard_of<Z, batch>, Shard<batch>>);
static_assert(same<shard_entries<Z, batch>, list<>>);

static_assert(AnyLayout<L> && AnyLayout<Layout<Mesh<>>> && !AnyLayout<Grid> && !AnyLayout<int>);

// What is refused, with the reason in the type.
static_assert(same<Layout<Grid, Shard<seq, ep>>,
                   refused<because::axis_not_in_the_mesh<ep>, try_<name_an_axis_of_this_mesh>, Grid, Shard<seq, ep>>>);
static_assert(
    same<Layout<Grid, Shard<seq, tp>, Partial<tp>>,
         refused<because::axis_placed_twice<tp>, try_<list_each_axis_once>, Grid, Shard<seq, tp>, Partial<tp>>>);
static_assert(same<Layout<Grid, Shard<seq, tp, tp>>,
                   refused<because::axis_placed_twice<tp>, try_<list_each_axis_once>, Grid, Shard<seq, tp, tp>>>);
static_assert(
    same<Layout<Grid, Replicate<tp>, Shard<seq, tp>>,
         refused<because::axis_placed_twice<tp>, try_<list_each_axis_once>, Grid, Replicate<tp>, Shard<seq, tp>>>);
static_assert(same<Layout<Grid, Shard<seq, tp>, Shard<seq, dp>>,
                   refused<because::dim_repeated<seq>, try_<list_all_axes_of_a_dim_in_one_Shard>, Grid, Shard<seq, tp>,
                           Shard<seq, dp>>>);
static_assert(
    same<Layout<Grid, Shard<seq, Zigzag<tp>, tp>>,
         refused<because::axis_placed_twice<tp>, try_<list_each_axis_once>, Grid, Shard<seq, Zigzag<tp>, tp>>>);
static_assert(same<Layout<Grid, Shard<seq, cp, Counted<tp>>>,
                   refused<because::counted_axis_is_not_major_most<tp>, try_<list_the_counted_axis_first_in_its_Shard>,
                           Grid, Shard<seq, cp, Counted<tp>>>>);
static_assert(AnyLayout<Layout<Grid, Shard<seq, Counted<tp>, cp>>>);
static_assert(same<Layout<Grid, Partial<dp>, Partial<tp, Max>>,
                   refused<because::Partials_have_different_reductions<tp>, try_<reduce_one_of_them_first>, Grid,
                           Partial<dp>, Partial<tp, Max>>>);
static_assert(AnyLayout<Layout<Grid, Partial<dp, Max>, Partial<tp, Max>>>);
template <int i>
struct numbered : axis {};
using Nine = Mesh<numbered<0>, numbered<1>, numbered<2>, numbered<3>, numbered<4>, numbered<5>, numbered<6>, dp, tp>;
static_assert(same<Layout<Nine>,
                   refused<because::mesh_has_more_than_8_axes, try_<merge_axes_that_are_always_used_together>, Nine>>);
static_assert(!AnyLayout<Layout<Grid, Shard<seq, ep>>>);

TEST_CASE("layouts: checked when this file is compiled") { CHECK(AnyLayout<L>); }

}  // namespace
