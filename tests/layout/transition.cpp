// SPDX-License-Identifier: Apache-2.0
#include "meshwise/layout/transition.hpp"

#include <doctest/doctest.h>

namespace {

using namespace meshwise;
using namespace meshwise::detail;

using Grid = Mesh<dp, cp, tp>;
template <class... Ps>
using On = Layout<Grid, Ps...>;
template <class A, class B>
inline constexpr bool same = std::is_same_v<A, B>;

/// convert<Ps...> of L is accepted and gives Result.
template <class Result, class L, class... Ps>
inline constexpr bool gives = same<conversion_verdict<L, Ps...>, accepted<Result>>;

// The table, one axis.
template <class From, class To, Transition kind>
inline constexpr bool row = transition_of<On<From>, To> == kind&& gives<On<To>, On<From>, To>;
static_assert(row<Partial<tp>, Replicate<tp>, Transition::all_reduce>);
static_assert(row<Partial<tp, Max>, Replicate<tp>, Transition::all_reduce>);
static_assert(row<Partial<tp>, Shard<seq, tp>, Transition::reduce_scatter>);
static_assert(row<Partial<tp, Min>, Shard<seq, tp>, Transition::reduce_scatter>);
static_assert(row<Shard<seq, tp>, Replicate<tp>, Transition::all_gather>);
static_assert(row<Shard<seq, tp>, Shard<heads, tp>, Transition::all_to_all>);
static_assert(row<Replicate<tp>, Shard<seq, tp>, Transition::slice>);
static_assert(row<Replicate<tp>, Partial<tp>, Transition::keep_first>);
static_assert(row<Replicate<tp>, Partial<tp, Max>, Transition::keep_first>);
static_assert(row<Shard<seq, tp>, Partial<tp>, Transition::pad>);
static_assert(row<Shard<seq, tp>, Partial<tp, Max>, Transition::pad>);
static_assert(row<Replicate<tp>, Replicate<tp>, Transition::equal>);
static_assert(row<Shard<seq, tp>, Shard<seq, tp>, Transition::equal>);
static_assert(row<Partial<tp, Max>, Partial<tp, Max>, Transition::equal>);

// Other axes stay as they are; a shard joins and leaves at the minor end of its dim.
using Busy = On<Shard<batch, dp>, Partial<cp>, Shard<seq, tp>>;
static_assert(gives<On<Shard<batch, dp>, Partial<cp>>, Busy, Replicate<tp>>);
static_assert(gives<On<Shard<batch, dp, tp>, Partial<cp>>, Busy, Shard<batch, tp>>);
static_assert(gives<On<Shard<batch, dp>, Shard<seq, tp, cp>>, Busy, Shard<seq, cp>>);
static_assert(gives<On<Shard<batch, dp>>, On<Shard<batch, dp, tp>>, Replicate<tp>>);
static_assert(transition_of<On<Shard<batch, dp, tp>>, Shard<batch, tp>> == Transition::equal);
static_assert(gives<On<Shard<batch, dp, tp>>, On<Shard<batch, dp, tp>>, Shard<batch, tp>>);

// Several placements, in order.
static_assert(gives<On<>, Busy, Replicate<tp>, Replicate<cp>, Replicate<dp>>);
static_assert(gives<On<Shard<seq, tp, dp>, Partial<cp>>, Busy, Shard<seq, dp>>);
static_assert(gives<On<Shard<seq, dp, tp>>, On<Shard<seq, tp, dp>>, Replicate<dp>, Replicate<tp>, Shard<seq, dp, tp>>);
static_assert(gives<On<Shard<batch, dp, cp, tp>>, On<>, Shard<batch, dp, cp, tp>>);
static_assert(gives<On<Shard<batch, dp, cp, tp>>, On<Shard<batch, dp>>, Shard<batch, dp, cp, tp>>);
static_assert(gives<On<Shard<batch, dp, cp>>, On<Shard<batch, dp, cp>>, Shard<batch, dp, cp>>);
static_assert(gives<On<Shard<batch, dp>>, On<Shard<batch, dp>>>);
// What holds at the start counts only if it still holds when its turn comes.
static_assert(gives<On<Shard<seq, tp>>, On<Shard<seq, tp>>, Replicate<tp>, Shard<seq, tp>>);
static_assert(conversion_steps<On<Shard<seq, tp>>, Shard<seq, tp>>().size == 0);

// Refusals.
static_assert(same<conversion_verdict<On<>, Replicate<ep>>,
                   refused<because::axis_not_in_the_mesh<ep>, try_<name_an_axis_of_this_mesh>, On<>>>);
static_assert(
    same<conversion_verdict<On<Shard<batch, dp, tp>>, Replicate<dp>>,
         refused<because::axis_is_not_minor_most_in_its_dim<dp, batch>,
                 try_<move_the_minor_axes_first, or_<reshard_to_the_layout_wanted>>, On<Shard<batch, dp, tp>>>>);
static_assert(
    same<conversion_verdict<On<Shard<batch, dp, tp>>, Shard<batch, dp>>,
         refused<because::axis_is_not_minor_most_in_its_dim<dp, batch>,
                 try_<move_the_minor_axes_first, or_<reshard_to_the_layout_wanted>>, On<Shard<batch, dp, tp>>>>);
static_assert(
    same<conversion_verdict<On<Shard<batch, tp, dp>>, Shard<batch, dp, tp>>,
         refused<because::axis_is_not_minor_most_in_its_dim<tp, batch>,
                 try_<move_the_minor_axes_first, or_<reshard_to_the_layout_wanted>>, On<Shard<batch, tp, dp>>>>);
static_assert(
    same<conversion_verdict<On<Shard<seq, tp>>, Shard<seq, dp>, Shard<seq, tp>>,
         refused<because::axis_is_not_minor_most_in_its_dim<tp, seq>,
                 try_<move_the_minor_axes_first, or_<reshard_to_the_layout_wanted>>, On<Shard<seq, tp, dp>>>>);
static_assert(same<conversion_verdict<On<Partial<tp>>, Partial<tp, Max>>,
                   refused<because::reduction_of_a_Partial_cannot_change<tp, Partial<tp>, Partial<tp, Max>>,
                           try_<convert_<Replicate<tp>>>, On<Partial<tp>>>>);
// A later step's refusal shows the layout it was met in.
static_assert(same<conversion_verdict<On<Partial<tp>>, Shard<seq, dp>, Partial<tp, Min>>,
                   refused<because::reduction_of_a_Partial_cannot_change<tp, Partial<tp>, Partial<tp, Min>>,
                           try_<convert_<Replicate<tp>>>, On<Partial<tp>, Shard<seq, dp>>>>);

// The remedy of a missing conversion.
static_assert(same<needed_conversion<Busy, On<Shard<batch, dp>>>, convert_<Replicate<cp>, Replicate<tp>>>);
static_assert(same<needed_conversion<On<Partial<tp>>, On<Shard<seq, tp>>>, convert_<Shard<seq, tp>>>);

// Split rules: an axis that is cut anew by another rule is exchanged; everything else is as for contiguous axes.
static_assert(row<Shard<seq, Zigzag<tp>>, Shard<seq, tp>, Transition::exchange>);
static_assert(row<Shard<seq, tp>, Shard<seq, Striped<tp>>, Transition::exchange>);
static_assert(row<Shard<seq, Chunked<tp>>, Shard<seq, Counted<tp>>, Transition::exchange>);
static_assert(row<Shard<seq, Zigzag<tp>>, Shard<seq, Zigzag<tp>>, Transition::equal>);
static_assert(row<Shard<seq, Zigzag<tp>>, Replicate<tp>, Transition::all_gather>);
static_assert(row<Shard<seq, Zigzag<tp>>, Shard<heads, tp>, Transition::all_to_all>);
static_assert(row<Shard<seq, Zigzag<tp>>, Shard<heads, Zigzag<tp>>, Transition::all_to_all>);
static_assert(row<Shard<seq, Zigzag<tp>>, Partial<tp>, Transition::pad>);
static_assert(row<Partial<tp>, Shard<seq, Zigzag<tp>>, Transition::reduce_scatter>);
static_assert(row<Replicate<tp>, Shard<seq, Counted<tp>>, Transition::slice>);
static_assert(gives<On<Shard<seq, Zigzag<cp>, tp>>, On<>, Shard<seq, Zigzag<cp>, tp>>);
static_assert(gives<On<Shard<seq, Zigzag<cp>, tp>>, On<Shard<seq, Zigzag<cp>>>, Shard<seq, tp>>);
static_assert(gives<On<Shard<seq, Zigzag<cp>>>, On<Shard<seq, Zigzag<cp>, tp>>, Replicate<tp>>);
static_assert(gives<On<Shard<seq, dp, Striped<tp>>>, On<Shard<seq, dp, tp>>, Shard<seq, Striped<tp>>>);
static_assert(gives<On<Shard<batch, tp>, Shard<seq, Zigzag<cp>>>, On<Shard<seq, Zigzag<cp>, tp>>, Shard<batch, tp>>);
static_assert(conversion_steps<On<Shard<seq, Zigzag<cp>, tp>>, Shard<seq, Zigzag<cp>, tp>>().size == 0);
static_assert(
    same<conversion_verdict<On<Shard<seq, Zigzag<cp>, tp>>, Shard<seq, cp>>,
         refused<because::axis_is_not_minor_most_in_its_dim<cp, seq>,
                 try_<move_the_minor_axes_first, or_<reshard_to_the_layout_wanted>>, On<Shard<seq, Zigzag<cp>, tp>>>>);
// Counts are of a whole dim.
static_assert(same<conversion_verdict<On<Shard<seq, cp>>, Shard<seq, Counted<tp>>>,
                   refused<because::counted_axis_is_not_major_most<tp>, try_<list_the_counted_axis_first_in_its_Shard>,
                           Grid, Shard<seq, cp, Counted<tp>>>>);
// One reduction in a layout.
static_assert(same<conversion_verdict<On<Partial<tp>>, Partial<dp, Max>>,
                   refused<because::Partials_have_different_reductions<dp>, try_<reduce_one_of_them_first>, Grid,
                           Partial<tp>, Partial<dp, Max>>>);
static_assert(gives<On<Partial<dp, Max>>, On<Partial<tp>>, Replicate<tp>, Partial<dp, Max>>);
// Remedies spell rules.
static_assert(same<needed_conversion<On<Shard<seq, Zigzag<tp>>>, On<Shard<seq, tp>>>, convert_<Shard<seq, tp>>>);
static_assert(same<needed_conversion<On<>, On<Shard<seq, Zigzag<cp>, tp>>>, convert_<Shard<seq, Zigzag<cp>, tp>>>);
static_assert(same<needed_conversion<On<Shard<seq, cp, tp>>, On<Shard<seq, Zigzag<cp>, tp>>>,
                   convert_<Replicate<tp>, Replicate<cp>, Shard<seq, Zigzag<cp>, tp>>>);

TEST_CASE("transitions: checked when this file is compiled") {
  CHECK(transition_of<On<Partial<tp>>, Replicate<tp>> == Transition::all_reduce);
}

}  // namespace
