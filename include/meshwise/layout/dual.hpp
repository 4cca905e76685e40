// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "meshwise/layout/transition.hpp"

namespace meshwise::detail {

/// The axes of a list up to A.
template <class A, class... Axes>
consteval auto up_to(list<Axes...>) {
  constexpr int last = index_of<A, list<Axes...>>;
  return joined<std::conditional_t<(index_of<Axes, list<Axes...>> <= last), list<Axes>, list<>>...>();
}

/// Whether Grad cuts the dim that Value, a Shard, cuts over A, down to A in the same order. What is minor to A does not
/// matter: it can still leave or join.
template <class A, class Value, class Grad>
consteval bool cut_alike() {
  if constexpr (!placement_traits<Grad>::shard) {
    return false;
  } else {
    return std::is_same_v<typename placement_traits<Value>::dim, typename placement_traits<Grad>::dim> &&
           std::is_same_v<decltype(up_to<A>(axes_of<Value>{})), decltype(up_to<A>(axes_of<Grad>{}))>;
  }
}

/// What one axis of a gradient must become, given how the value places it and how the gradient arrives.
///
/// Shard is its own dual. Partial (a sum) has dual Replicate. Replicate accepts Partial (its consumers did different
/// work) and Replicate (they did the same work), so a gradient that arrives as either stays as it is.
template <class A, class Value, class Grad>
consteval auto dual_step() {
  using V = placement_traits<Value>;
  using G = placement_traits<Grad>;
  if constexpr (V::shard) {
    if constexpr (cut_alike<A, Value, Grad>()) {
      return list<>{};
    } else {
      return list<Shard<typename V::dim, A>>{};
    }
  } else if constexpr (V::partial) {
    if constexpr (!V::op::linear) {
      return type<refused<because::Partial_with_this_reduction_has_no_gradient<A>, try_<convert_<Replicate<A>>>>>{};
    } else if constexpr (G::replicate) {
      return list<>{};
    } else {
      return list<Replicate<A>>{};
    }
  } else {
    if constexpr (G::shard) {
      return type<refused<because::gradient_arrives_sharded_where_the_value_is_replicated<A>,
                          try_<convert_the_gradient_yourself_to_Partial_or_Replicate>>>{};
    } else {
      return list<>{};
    }
  }
}

template <class T>
inline constexpr bool is_list = false;
template <class... Ts>
inline constexpr bool is_list<list<Ts...>> = true;

template <class A, class Value, class Grad>
using dual_step_on = decltype(dual_step<A, placement_on<Value, A>, placement_on<Grad, A>>());

/// Walks the axes: those to be looked at, and those that have to wait for another one, because in their dim a minor
/// axis must leave or a major one must join first. Returns all steps, or a refusal.
template <class Value, class Grad, class Steps>
consteval auto dual_chain(list<>, list<>, Steps steps) {
  return steps;
}
template <class Value, class Grad, class Steps, class A, class... Waiting>
consteval auto dual_chain(list<>, list<A, Waiting...>, Steps) {
  using verdict = layout_after<Grad, front<dual_step_on<A, Value, Grad>>>;
  using unordered =
      refused<because::gradient_is_not_in_the_dual_of_the_value, try_<convert_<Replicate<A>>>, Value, Grad>;
  return type<std::conditional_t<is_accepted<verdict>, unordered, verdict>>{};
}
template <class Value, class Grad, class Steps, class A, class... Rest, class... Waiting>
consteval auto dual_chain(list<A, Rest...>, list<Waiting...>, Steps steps) {
  using step = dual_step_on<A, Value, Grad>;
  if constexpr (!is_list<step>) {
    return step{};
  } else if constexpr (step::size == 0) {
    return dual_chain<Value, Grad>(list<Rest...>{}, list<Waiting...>{}, steps);
  } else {
    using verdict = layout_after<Grad, front<step>>;
    if constexpr (is_accepted<verdict>) {
      if constexpr (std::is_same_v<dual_step_on<A, Value, typename verdict::is>, list<>>) {
        return dual_chain<Value, typename verdict::is>(list<Waiting..., Rest...>{}, list<>{}, steps + step{});
      } else {
        return dual_chain<Value, Grad>(list<Rest...>{}, list<Waiting..., A>{}, steps);
      }
    } else {
      return dual_chain<Value, Grad>(list<Rest...>{}, list<Waiting..., A>{}, steps);
    }
  }
}

/// The one-axis conversions that bring a gradient with layout Grad to a dual of Value, as a list, or a refusal.
template <class Value, class Grad>
consteval auto dual_steps() {
  if constexpr (!std::is_same_v<grid_of<Value>, grid_of<Grad>>) {
    return type<refused<because::meshes_differ, try_<bring_both_to_one_mesh>, Value, Grad>>{};
  } else {
    return dual_chain<Value, Grad>(axes_of_layout<Value>{}, list<>{}, list<>{});
  }
}

template <class Value, class Grad>
consteval auto dual_verdict() {
  using steps = decltype(dual_steps<Value, Grad>());
  if constexpr (!is_list<steps>) {
    return steps{};
  } else {
    return chain_verdict<Grad>(steps{});
  }
}

}  // namespace meshwise::detail

namespace meshwise {

/// The most general dual of a layout: each replicated axis becomes Partial, each Partial becomes Replicate.
///
/// This is how the gradient of a parameter arrives when every rank along a replicated axis did different work.
template <class L>
struct owed;
template <class Grid, class... Ps>
struct owed<CanonicalLayout<Grid, Ps...>> {
 private:
  using value = CanonicalLayout<Grid, Ps...>;
  template <class P>
  static consteval auto dual_of() {
    if constexpr (detail::placement_traits<P>::shard) {
      return detail::list<P>{};
    } else if constexpr (detail::placement_traits<P>::replicate) {
      return detail::list<Partial<detail::front<detail::axes_of<P>>>>{};
    } else {
      return detail::list<>{};
    }
  }
  // A Shard over several axes is met once per axis: keep it at its major axis.
  template <class A, class P>
  static consteval auto at() {
    if constexpr (std::is_same_v<detail::front<detail::axes_of<P>>, A>) {
      return dual_of<P>();
    } else {
      return detail::list<>{};
    }
  }
  template <class... As>
  static consteval auto all(detail::list<As...>) {
    return detail::canonical_from<Grid>(detail::joined<decltype(at<As, detail::placement_on<value, As>>())...>());
  }

 public:
  using is = typename decltype(all(detail::axes_of_layout<value>{}))::is;
};

/// `Owed<Layout<Grid, Shard<ffn, tp>>>` is `Layout<Grid, Partial<dp>, Shard<ffn, tp>>` on a mesh of dp and tp.
template <class L>
using Owed = typename owed<L>::is;

}  // namespace meshwise
