// SPDX-License-Identifier: Apache-2.0
#include "meshwise/layout/dual.hpp"

#include <doctest/doctest.h>

namespace {

using namespace meshwise;
using namespace meshwise::detail;

using Grid = Mesh<dp, cp, tp>;
template <class... Ps>
using On = Layout<Grid, Ps...>;
template <class A, class B>
inline constexpr bool same = std::is_same_v<A, B>;

template <class Value, class Grad>
using dual_of = typename decltype(dual_verdict<Value, Grad>())::is;
/// A gradient in layout Grad of a value in layout Value is brought to Result by these steps.
template <class Value, class Grad, class Result, class... Steps>
inline constexpr bool goes =
    same<dual_of<Value, Grad>, accepted<Result>>&& same<decltype(dual_steps<Value, Grad>()), list<Steps...>>;

// One axis: Shard is its own dual, Partial and Replicate are each other's, Replicate accepts both.
using R = On<>;
using S = On<Shard<seq, tp>>;
using H = On<Shard<heads, tp>>;
using P = On<Partial<tp>>;
static_assert(goes<R, R, R> && goes<R, P, P>);
static_assert(goes<S, S, S> && goes<S, R, S, Shard<seq, tp>> && goes<S, P, S, Shard<seq, tp>>);
static_assert(goes<S, H, S, Shard<seq, tp>>);
static_assert(goes<P, R, R> && goes<P, S, R, Replicate<tp>> && goes<P, P, R, Replicate<tp>>);
static_assert(same<dual_of<R, S>, refused<because::gradient_arrives_sharded_where_the_value_is_replicated<tp>,
                                          try_<convert_the_gradient_yourself_to_Partial_or_Replicate>>>);
static_assert(same<dual_of<On<Partial<tp, Max>>, R>,
                   refused<because::Partial_with_this_reduction_has_no_gradient<tp>, try_<convert_<Replicate<tp>>>>>);
static_assert(same<dual_of<R, Layout<Mesh<tp>>>,
                   refused<because::meshes_differ, try_<bring_both_to_one_mesh>, R, Layout<Mesh<tp>>>>);

// Several axes at once; those that are right already stay.
static_assert(
    goes<On<Shard<batch, dp>, Partial<tp>>, On<Shard<batch, dp>, Shard<seq, tp>>, On<Shard<batch, dp>>, Replicate<tp>>);
static_assert(goes<On<Shard<seq, tp>>, On<Partial<dp>, Partial<tp>>, On<Partial<dp>, Shard<seq, tp>>, Shard<seq, tp>>);
static_assert(goes<On<Shard<batch, dp>, Shard<seq, tp>>, On<Partial<dp>, Shard<heads, tp>>,
                   On<Shard<batch, dp>, Shard<seq, tp>>, Shard<batch, dp>, Shard<seq, tp>>);

// One dim over several axes: the order of the value is restored, whatever the order of the mesh.
static_assert(goes<On<Shard<batch, dp, tp>>, R, On<Shard<batch, dp, tp>>, Shard<batch, dp>, Shard<batch, tp>>);
static_assert(goes<On<Shard<batch, tp, dp>>, R, On<Shard<batch, tp, dp>>, Shard<batch, tp>, Shard<batch, dp>>);
static_assert(goes<On<Shard<batch, tp, cp, dp>>, R, On<Shard<batch, tp, cp, dp>>, Shard<batch, tp>, Shard<batch, cp>,
                   Shard<batch, dp>>);
static_assert(
    goes<On<Shard<batch, tp, dp>>, On<Partial<dp>, Shard<batch, tp>>, On<Shard<batch, tp, dp>>, Shard<batch, dp>>);
static_assert(goes<On<Shard<batch, tp, dp>>, On<Shard<batch, tp, dp>>, On<Shard<batch, tp, dp>>>);
// What is minor leaves first.
static_assert(goes<On<Shard<batch, dp>, Partial<tp>>, On<Shard<batch, dp, tp>>, On<Shard<batch, dp>>, Replicate<tp>>);
static_assert(goes<On<Shard<batch, dp>, Shard<seq, tp>>, On<Shard<batch, dp, tp>>, On<Shard<batch, dp>, Shard<seq, tp>>,
                   Shard<seq, tp>>);
static_assert(goes<On<Partial<dp>, Partial<tp>>, On<Shard<batch, dp, tp>>, R, Replicate<tp>, Replicate<dp>>);
static_assert(
    goes<On<Shard<seq, dp>, Partial<tp>>, On<Shard<batch, dp, tp>>, On<Shard<seq, dp>>, Replicate<tp>, Shard<seq, dp>>);
// Orders that one-axis steps cannot change are refused, never taken for the right one.
static_assert(same<dual_of<On<Shard<batch, tp, dp>>, On<Shard<batch, dp>>>,
                   refused<because::gradient_is_not_in_the_dual_of_the_value, try_<convert_<Replicate<dp>>>,
                           On<Shard<batch, tp, dp>>, On<Shard<batch, dp>>>>);
static_assert(same<dual_of<On<Shard<batch, tp, dp>>, On<Shard<batch, dp, tp>>>,
                   refused<because::axis_is_not_minor_most_in_its_dim<dp, batch>, try_<move_the_minor_axes_first>,
                           On<Shard<batch, dp, tp>>>>);

// What a parameter is owed.
static_assert(same<Owed<R>, On<Partial<dp>, Partial<cp>, Partial<tp>>>);
static_assert(same<Owed<On<Shard<ffn, tp>>>, On<Partial<dp>, Partial<cp>, Shard<ffn, tp>>>);
static_assert(same<Owed<On<Shard<ffn, tp, dp>>>, On<Partial<cp>, Shard<ffn, tp, dp>>>);
static_assert(same<Owed<On<Partial<dp>, Shard<ffn, tp>>>, On<Partial<cp>, Shard<ffn, tp>>>);
template <class L>
inline constexpr bool involution = same<Owed<Owed<L>>, L>;
static_assert(involution<R> && involution<S> && involution<P> && involution<On<Shard<batch, tp, dp>>>);
static_assert(involution<On<Shard<batch, dp>, Partial<cp>, Shard<seq, tp>>>);
// It is a dual: nothing is left to do, and a reduction of the replicated axes makes it the parameter's layout.
template <class L>
inline constexpr bool owed_is_dual = goes<L, Owed<L>, Owed<L>>;
static_assert(owed_is_dual<R> && owed_is_dual<S> && owed_is_dual<P> && owed_is_dual<On<Shard<batch, tp, dp>>>);

TEST_CASE("duals: checked when this file is compiled") { CHECK(involution<R>); }

}  // namespace
