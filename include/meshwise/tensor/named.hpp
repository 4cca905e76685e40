// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>
#include <utility>

#include "meshwise/tensor/convert.hpp"

namespace meshwise {

namespace detail {

template <Transition t>
struct transition_is;

/// What the plan of a conversion is: its only step, or if it has several what the axis undergoes.
template <class L, class P, class To, class Ds>
consteval Transition conversion_named() {
  constexpr const LayoutPlan& steps = plan<L, To, Ds>;
  if constexpr (steps.count == 0) {
    return Transition::equal;
  } else {
    return steps.count == 1 ? steps.steps[0].what : transition<L, P>();
  }
}

/// The verdict on `convert<P>` when it has to be the transition that its caller named, and nothing else.
template <class T, class P, Transition named>
consteval auto named_verdict() {
  using verdict = convert_verdict<T, P>;
  if constexpr (!is_accepted<verdict>) {
    return type<verdict>{};
  } else if constexpr (!plan<typename T::layout, typename verdict::is, typename T::dims>.is(named)) {
    constexpr Transition actual = conversion_named<typename T::layout, P, typename verdict::is, typename T::dims>();
    using remedy =
        std::conditional_t<actual == Transition::equal, try_<name_another_axis_or_leave_it_out>, try_<convert_<P>>>;
    return type<refused<because::conversion_is_not_the_one_named<transition_is<named>, transition_is<actual>>, remedy,
                        typename T::layout>>{};
  } else {
    return type<verdict>{};
  }
}
template <class T, class P, Transition named>
using named_of = typename decltype(named_verdict<operand<T>, P, named>())::is;

}  // namespace detail

/// `convert<Replicate<A>>` of a sharded tensor: every rank along A gets the whole, in global order.
///
/// Cost: (n-1)/n of the gathered bytes received per rank, one allocation. Errors: refused if it is another transition.
template <Axis A, AnyTensor T>
  requires detail::is_accepted<detail::named_of<T, Replicate<A>, Transition::all_gather>>
[[nodiscard]] auto all_gather(T&& x) { return convert<Replicate<A>>(std::forward<T>(x)); }
template <Axis A, AnyTensor T>
  requires(!detail::is_accepted<detail::named_of<T, Replicate<A>, Transition::all_gather>>)
[[nodiscard]] auto all_gather(T&& x) -> detail::named_of<T, Replicate<A>, Transition::all_gather>;

/// `convert<Replicate<A>>` of a Partial: every rank along A gets the reduced value, bit for bit the same.
///
/// Cost: 2(n-1)/n of the bytes received per rank; in place for an rvalue that shares its storage with nobody.
template <Axis A, AnyTensor T>
  requires detail::is_accepted<detail::named_of<T, Replicate<A>, Transition::all_reduce>>
[[nodiscard]] auto all_reduce(T&& x) { return convert<Replicate<A>>(std::forward<T>(x)); }
template <Axis A, AnyTensor T>
  requires(!detail::is_accepted<detail::named_of<T, Replicate<A>, Transition::all_reduce>>)
[[nodiscard]] auto all_reduce(T&& x) -> detail::named_of<T, Replicate<A>, Transition::all_reduce>;

/// `convert<Shard<D, A>>` of a Partial: every rank along A gets its part of the reduced value.
///
/// Cost: (n-1)/n of the bytes received per rank, one allocation.
template <Dim D, Axis A, AnyTensor T>
  requires detail::is_accepted<detail::named_of<T, Shard<D, A>, Transition::reduce_scatter>>
[[nodiscard]] auto reduce_scatter(T&& x) { return convert<Shard<D, A>>(std::forward<T>(x)); }
template <Dim D, Axis A, AnyTensor T>
  requires(!detail::is_accepted<detail::named_of<T, Shard<D, A>, Transition::reduce_scatter>>)
[[nodiscard]] auto reduce_scatter(T&& x) -> detail::named_of<T, Shard<D, A>, Transition::reduce_scatter>;

/// `convert<Shard<D, A>>` of a tensor that A shards along another dim.
///
/// Cost: (n-1)/n of the local bytes received per rank, one allocation.
template <Dim D, Axis A, AnyTensor T>
  requires detail::is_accepted<detail::named_of<T, Shard<D, A>, Transition::all_to_all>>
[[nodiscard]] auto all_to_all(T&& x) { return convert<Shard<D, A>>(std::forward<T>(x)); }
template <Dim D, Axis A, AnyTensor T>
  requires(!detail::is_accepted<detail::named_of<T, Shard<D, A>, Transition::all_to_all>>)
[[nodiscard]] auto all_to_all(T&& x) -> detail::named_of<T, Shard<D, A>, Transition::all_to_all>;

}  // namespace meshwise
