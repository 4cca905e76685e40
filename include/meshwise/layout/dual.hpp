// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "meshwise/layout/transition.hpp"

namespace meshwise::detail {

/// What one axis of a gradient must become, given how the value places it (Value) and how the gradient arrives (Grad):
/// a list of a placement, of nothing where it is replicated or said at the major axis of a Shard, or of a refusal.
///
/// Shard is its own dual. Partial (a sum) has dual Replicate. Replicate accepts Partial (its consumers did different
/// work) and Replicate (they did the same work), so a gradient that arrives as either stays as it is.
template <class A, class Value, class Grad>
consteval auto dual_on() {
  using V = placement_traits<Value>;
  using G = placement_traits<Grad>;
  if constexpr (V::shard) {
    return std::conditional_t<std::is_same_v<front<axes_of<Value>>, A>, list<Value>, list<>>{};
  } else if constexpr (V::partial) {
    using refusal = refused<because::Partial_with_this_reduction_has_no_gradient<A>, try_<convert_<Replicate<A>>>>;
    return std::conditional_t<V::op::linear, list<>, list<refusal>>{};
  } else if constexpr (G::shard) {
    return list<refused<because::gradient_arrives_sharded_where_the_value_is_replicated<A>,
                        try_<convert_the_gradient_yourself_to_Partial_or_Replicate>>>{};
  } else {
    return std::conditional_t<G::partial, list<Grad>, list<>>{};
  }
}

template <class T>
struct is_a_refusal {
  static constexpr bool value = !placement_traits<T>::is_placement;
};

template <class Value, class Grad, class... As>
consteval auto dual_layout(list<As...>) {
  using all = decltype(joined<decltype(dual_on<As, placement_on<Value, As>, placement_on<Grad, As>>())...>());
  using refusals = decltype(filtered<is_a_refusal>(all{}));
  if constexpr (refusals::size != 0) {
    return type<front<refusals>>{};
  } else {
    using result = typename decltype(canonical_from<grid_of<Value>>(all{}))::is;
    return type<std::conditional_t<AnyLayout<result>, accepted<result>, result>>{};
  }
}

/// The verdict on bringing a gradient with layout Grad to a dual of Value: the layout that it gets, or a refusal.
template <class Value, class Grad>
consteval auto dual_verdict() {
  if constexpr (!std::is_same_v<grid_of<Value>, grid_of<Grad>>) {
    return type<refused<because::meshes_differ, try_<bring_both_to_one_mesh>, Value, Grad>>{};
  } else {
    return dual_layout<Value, Grad>(axes_of_layout<Value>{});
  }
}

/// Whether a gradient with layout Grad is in a dual of Value as it is.
template <class Value, class Grad>
inline constexpr bool is_dual = std::is_same_v<typename decltype(dual_verdict<Value, Grad>())::is, accepted<Grad>>;

/// What has to change to bring it there, as a list of placements that is empty if nothing has to; or a refusal.
template <class Value, class Grad>
consteval auto dual_steps() {
  using verdict = typename decltype(dual_verdict<Value, Grad>())::is;
  if constexpr (!is_accepted<verdict>) {
    return type<verdict>{};
  } else {
    return changes<Grad, typename verdict::is>(axes_of_layout<Value>{});
  }
}

}  // namespace meshwise::detail

namespace meshwise {

/// The most general dual of a layout: each replicated axis becomes Partial, each Partial becomes Replicate.
///
/// This is how the gradient of a parameter arrives when every rank along a replicated axis did different work. Refused,
/// as a type that is never complete: a Partial whose reduction is not linear, because it has no gradient.
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
  template <class P>
  static consteval auto without_gradient() {
    if constexpr (!detail::placement_traits<P>::partial) {
      return detail::list<>{};
    } else {
      return std::conditional_t<detail::placement_traits<P>::op::linear, detail::list<>, detail::axes_of<P>>{};
    }
  }
  template <class... As>
  static consteval auto all(detail::list<As...>) {
    using bad = detail::join<decltype(without_gradient<Ps>())...>;
    if constexpr (bad::size != 0) {
      using A = detail::front<bad>;
      return detail::type<
          refused<because::Partial_with_this_reduction_has_no_gradient<A>, try_<convert_<Replicate<A>>>, value>>{};
    } else {
      return detail::canonical_from<Grid>(detail::joined<decltype(at<As, detail::placement_on<value, As>>())...>());
    }
  }

 public:
  using is = typename decltype(all(detail::axes_of_layout<value>{}))::is;
};

/// `Owed<Layout<Grid, Shard<ffn, tp>>>` is `Layout<Grid, Partial<dp>, Shard<ffn, tp>>` on a mesh of dp and tp.
template <class L>
using Owed = typename owed<L>::is;

}  // namespace meshwise
