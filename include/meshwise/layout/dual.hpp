// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "meshwise/layout/transition.hpp"

namespace meshwise::detail {

/// What one axis of a gradient must become, given how the value places it and how the gradient arrives.
///
/// Shard is its own dual. Partial (a sum) has dual Replicate. Replicate accepts Partial (its consumers did different
/// work) and Replicate (they did the same work), so a gradient that arrives as either stays as it is.
template <class A, class Value, class Grad>
consteval auto dual_step() {
  using V = placement_traits<Value>;
  using G = placement_traits<Grad>;
  if constexpr (V::shard) {
    if constexpr (std::is_same_v<Value, Grad>) {
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

/// Walks the axes of the mesh; the steps so far and the layout the gradient has then.
template <class Value, class Grad, class Steps>
consteval auto dual_chain(list<>, Steps steps) {
  return steps;
}
template <class Value, class Grad, class Steps, class A, class... Rest>
consteval auto dual_chain(list<A, Rest...>, Steps steps) {
  using step = decltype(dual_step<A, placement_on<Value, A>, placement_on<Grad, A>>());
  if constexpr (!is_list<step>) {
    return step{};
  } else if constexpr (step::size == 0) {
    return dual_chain<Value, Grad>(list<Rest...>{}, steps);
  } else {
    using verdict = layout_after<Grad, front<step>>;
    if constexpr (is_accepted<verdict>) {
      return dual_chain<Value, typename verdict::is>(list<Rest...>{}, steps + step{});
    } else {
      return type<verdict>{};
    }
  }
}

/// The one-axis conversions that bring a gradient with layout Grad to a dual of Value, as a list, or a refusal.
template <class Value, class Grad>
consteval auto dual_steps() {
  if constexpr (!std::is_same_v<grid_of<Value>, grid_of<Grad>>) {
    return type<refused<because::meshes_differ, try_<name_an_axis_of_this_mesh>, Value, Grad>>{};
  } else {
    return dual_chain<Value, Grad>(axes_of_layout<Value>{}, list<>{});
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
