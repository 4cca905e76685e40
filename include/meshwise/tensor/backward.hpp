// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "meshwise/core/detail/sorted.hpp"
#include "meshwise/layout/dual.hpp"
#include "meshwise/tensor/convert.hpp"

namespace meshwise {

namespace detail {

template <class Value, class Grad>
consteval auto backward_verdict() {
  if constexpr (!std::is_same_v<typename Value::dims, typename Grad::dims>) {
    return type<refused<because::dims_differ, try_<give_the_gradient_the_dims_of_the_value>, typename Value::dims,
                        typename Grad::dims>>{};
  } else {
    return decltype(dual_verdict<typename Value::layout, typename Grad::layout>()){};
  }
}
template <class Value, class Grad>
using backward_counted_of = typename decltype(backward_verdict<operand<Value>, operand<Grad>>())::is;
template <class Value, class Grad>
using backward_of = typename decltype(without_counts_verdict<operand<Grad>, backward_counted_of<Value, Grad>>())::is;

/// The verdict on the backward of a conversion of something that a verdict allowed.
template <class Verdict, class G>
consteval auto backward_through_verdict() {
  if constexpr (!is_accepted<Verdict>) {
    return type<Verdict>{};
  } else {
    return type<backward_of<typename Verdict::is, G>>{};
  }
}
template <class Verdict, class G>
using backward_through = typename decltype(backward_through_verdict<Verdict, G>())::is;

}  // namespace detail

/// The backward of whatever produced a gradient from a Value: brings it to a dual of Value's layout.
///
/// Value: the tensor type whose gradient this is, `backward_to<decltype(x)>(dy)` or `backward_to<X>(dy)`. gradient: any
/// layout, the dims of Value. A sharded axis of Value ends sharded alike, a Partial one Replicate; on a replicated axis
/// the gradient stays Partial or Replicate as it arrives, and one that arrives sharded there is refused, because only
/// the user knows whether a sum is owed. Cost: the conversions on the axes that differ, nothing else.
/// Source: the adjoint under <x, g> summed over ranks, docs/architecture.md.
template <AnyTensor Value, AnyTensor G>
  requires detail::is_accepted<detail::backward_of<Value, G>>
[[nodiscard]] auto backward_to(G&& gradient) {
  return detail::planned<typename detail::backward_of<Value, G>::is>("backward_to", std::forward<G>(gradient));
}
template <AnyTensor Value, AnyTensor G>
  requires(!detail::is_accepted<detail::backward_of<Value, G>>)
[[nodiscard]] auto backward_to(G&& gradient) -> detail::backward_of<Value, G>;

/// The same where dims of Value are Counted and those of the gradient are not. extents: those of the value, which know
/// the counts: `backward_to<X>(dy, x.extents())`.
template <AnyTensor Value, AnyTensor G>
  requires detail::is_accepted<detail::backward_counted_of<Value, G>>
[[nodiscard]] auto backward_to(G&& gradient, const Extents<typename detail::bare<Value>::dims>& extents) {
  return detail::planned<typename detail::backward_counted_of<Value, G>::is>("backward_to", std::forward<G>(gradient),
                                                                             extents);
}
template <AnyTensor Value, AnyTensor G>
  requires(!detail::is_accepted<detail::backward_counted_of<Value, G>>)
[[nodiscard]] auto backward_to(G&& gradient, const Extents<typename detail::bare<Value>::dims>& extents)
    -> detail::backward_counted_of<Value, G>;

namespace detail {

/// Verdict list of one placement of a loss: only sums have a gradient.
template <class L, class P>
consteval auto seed_refusal() {
  if constexpr (placement_traits<P>::partial) {
    using A = front<axes_of<P>>;
    using refusal = refused<because::Partial_with_this_reduction_has_no_gradient<A>, try_<convert_<Replicate<A>>>, L>;
    return std::conditional_t<placement_traits<P>::op::linear, list<>, list<refusal>>{};
  } else {
    return list<>{};
  }
}
/// The verdict on the gradient of a loss with respect to itself: its layout, where the sums that are owed are whole.
template <class L>
consteval auto seed_verdict() {
  return []<class... Ps>(list<Ps...>) {
    using layout = typename decltype(canonical_from<grid_of<L>>(
        joined<std::conditional_t<placement_traits<Ps>::partial, list<>, list<Ps>>...>()))::is;
    return first_of(joined<decltype(seed_refusal<L, Ps>())..., list<accepted<layout>>>());
  }(placements_of<L>{});
}
template <class T>
using seed_of = typename decltype(seed_verdict<typename operand<T>::layout>())::is;

}  // namespace detail

/// The gradient of a loss with respect to itself: ones, in the dual of its layout.
///
/// loss: a Partial becomes Replicate, because each rank's share enters the sum once. Cost: one allocation.
/// Errors: refused for a loss that is owed as a maximum or another reduction that is not a sum.
template <AnyTensor T>
  requires detail::is_accepted<detail::seed_of<T>>
[[nodiscard]] auto gradient_seed(const T& loss) {
  using L = typename detail::seed_of<T>::is;
  Tensor<typename T::element, typename T::dims, L, typename T::space> ones(loss.mesh(), loss.extents());
  const auto all = ones.mutable_local();
  detail::fill(all.data(), all.size(), static_cast<typename T::element>(1));
  return ones;
}
template <AnyTensor T>
  requires(!detail::is_accepted<detail::seed_of<T>>)
[[nodiscard]] auto gradient_seed(const T& loss) -> detail::seed_of<T>;

}  // namespace meshwise
