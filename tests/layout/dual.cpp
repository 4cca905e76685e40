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
/// A gradient in layout Grad of a value in layout Value is brought to Result, and stays there.
template <class Value, class Grad, class Result>
inline constexpr bool goes =
    same<dual_of<Value, Grad>, accepted<Result>>&& is_dual<Value, Result>&& is_dual<Value, Grad> ==
        same<Grad, Result> &&
    (dual_steps<Value, Grad>().size == 0) == same<Grad, Result>;

// One axis: Shard is its own dual, Partial and Replicate are each other's, Replicate accepts both.
using R = On<>;
using S = On<Shard<seq, tp>>;
using H = On<Shard<heads, tp>>;
using P = On<Partial<tp>>;
static_assert(goes<R, R, R> && goes<R, P, P>);
static_assert(goes<S, S, S> && goes<S, R, S> && goes<S, P, S>);
static_assert(goes<S, H, S>);
static_assert(goes<P, R, R> && goes<P, S, R> && goes<P, P, R>);
static_assert(same<dual_of<R, S>, refused<because::gradient_arrives_sharded_where_the_value_is_replicated<tp>,
                                          try_<convert_the_gradient_yourself_to_Partial_or_Replicate>>>);
static_assert(same<dual_of<On<Partial<tp, Max>>, R>,
                   refused<because::Partial_with_this_reduction_has_no_gradient<tp>, try_<convert_<Replicate<tp>>>>>);
static_assert(same<dual_of<R, Layout<Mesh<tp>>>,
                   refused<because::meshes_differ, try_<bring_both_to_one_mesh>, R, Layout<Mesh<tp>>>>);

// Several axes at once; those that are right already stay.
static_assert(goes<On<Shard<batch, dp>, Partial<tp>>, On<Shard<batch, dp>, Shard<seq, tp>>, On<Shard<batch, dp>>>);
static_assert(goes<On<Shard<seq, tp>>, On<Partial<dp>, Partial<tp>>, On<Partial<dp>, Shard<seq, tp>>>);
static_assert(goes<On<Shard<batch, dp>, Shard<seq, tp>>, On<Partial<dp>, Shard<heads, tp>>,
                   On<Shard<batch, dp>, Shard<seq, tp>>>);

// One dim over several axes: the order of the value is restored, whatever the order of the mesh.
static_assert(goes<On<Shard<batch, dp, tp>>, R, On<Shard<batch, dp, tp>>>);
static_assert(goes<On<Shard<batch, tp, dp>>, R, On<Shard<batch, tp, dp>>>);
static_assert(goes<On<Shard<batch, tp, cp, dp>>, R, On<Shard<batch, tp, cp, dp>>>);
static_assert(goes<On<Shard<batch, tp, dp>>, On<Partial<dp>, Shard<batch, tp>>, On<Shard<batch, tp, dp>>>);
static_assert(goes<On<Shard<batch, tp, dp>>, On<Shard<batch, tp, dp>>, On<Shard<batch, tp, dp>>>);
// What is minor leaves first.
static_assert(goes<On<Shard<batch, dp>, Partial<tp>>, On<Shard<batch, dp, tp>>, On<Shard<batch, dp>>>);
static_assert(
    goes<On<Shard<batch, dp>, Shard<seq, tp>>, On<Shard<batch, dp, tp>>, On<Shard<batch, dp>, Shard<seq, tp>>>);
static_assert(goes<On<Partial<dp>, Partial<tp>>, On<Shard<batch, dp, tp>>, R>);
static_assert(goes<On<Shard<seq, dp>, Partial<tp>>, On<Shard<batch, dp, tp>>, On<Shard<seq, dp>>>);
// An order that no step of one axis changes is changed by an exchange.
static_assert(goes<On<Shard<batch, tp, dp>>, On<Shard<batch, dp>>, On<Shard<batch, tp, dp>>>);
static_assert(goes<On<Shard<batch, tp, dp>>, On<Shard<batch, dp, tp>>, On<Shard<batch, tp, dp>>>);
static_assert(same<dual_of<On<Shard<batch, dp>>, On<Shard<batch, tp, dp>>>,
                   refused<because::gradient_arrives_sharded_where_the_value_is_replicated<tp>,
                           try_<convert_the_gradient_yourself_to_Partial_or_Replicate>>>);

// A rule is part of what the gradient has to be.
using Z = On<Shard<seq, Zigzag<tp>>>;
static_assert(goes<Z, Z, Z> && goes<Z, S, Z> && goes<S, Z, S>);
static_assert(goes<Z, R, Z> && goes<Z, P, Z>);
static_assert(
    goes<On<Shard<seq, Zigzag<cp>, tp>>, On<Shard<seq, Zigzag<cp>>, Partial<tp>>, On<Shard<seq, Zigzag<cp>, tp>>>);
static_assert(goes<On<Shard<seq, Zigzag<cp>, tp>>, R, On<Shard<seq, Zigzag<cp>, tp>>>);
static_assert(goes<On<Shard<seq, Zigzag<cp>, Striped<tp>>>, On<Partial<dp>, Partial<cp>, Partial<tp>>,
                   On<Partial<dp>, Shard<seq, Zigzag<cp>, Striped<tp>>>>);
static_assert(goes<On<Shard<seq, Zigzag<cp>, tp>>, On<Shard<seq, cp, tp>>, On<Shard<seq, Zigzag<cp>, tp>>>);
static_assert(same<Owed<Z>, On<Partial<dp>, Partial<cp>, Shard<seq, Zigzag<tp>>>>);
// Maxima and minima have no gradient, over one axis or several.
static_assert(same<dual_of<On<Partial<cp, Min>, Partial<tp, Min>>, R>,
                   refused<because::Partial_with_this_reduction_has_no_gradient<cp>, try_<convert_<Replicate<cp>>>>>);

// What a parameter is owed.
static_assert(same<Owed<R>, On<Partial<dp>, Partial<cp>, Partial<tp>>>);
static_assert(same<Owed<On<Shard<ffn, tp>>>, On<Partial<dp>, Partial<cp>, Shard<ffn, tp>>>);
static_assert(same<Owed<On<Shard<ffn, tp, dp>>>, On<Partial<cp>, Shard<ffn, tp, dp>>>);
static_assert(same<Owed<On<Partial<dp>, Shard<ffn, tp>>>, On<Partial<cp>, Shard<ffn, tp>>>);
static_assert(same<Owed<On<Partial<tp, Max>>>, refused<because::Partial_with_this_reduction_has_no_gradient<tp>,
                                                       try_<convert_<Replicate<tp>>>, On<Partial<tp, Max>>>>);
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
