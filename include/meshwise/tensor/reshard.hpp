// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "meshwise/tensor/convert.hpp"

namespace meshwise {

namespace detail {

/// The first axis on which both layouts owe a sum, by different reductions, as a refusal; else accepted.
template <class From, class To, class... As>
consteval auto reduction_kept(list<As...>) {
  return first_of(
      joined<std::conditional_t<
                 placement_traits<placement_on<From, As>>::partial && placement_traits<placement_on<To, As>>::partial &&
                     !std::is_same_v<placement_on<From, As>, placement_on<To, As>>,
                 list<refused<
                     because::reduction_of_a_Partial_cannot_change<As, placement_on<From, As>, placement_on<To, As>>,
                     try_<convert_<Replicate<As>>>, From>>,
                 list<>>...,
             list<accepted<To>>>());
}

/// The verdict on bringing T into layout To.
template <class T, class To>
consteval auto reshard_verdict() {
  using valid = typename decltype(tensor_verdict<typename T::dims, To>())::is;
  if constexpr (!is_accepted<valid>) {
    return type<valid>{};
  } else if constexpr (!std::is_same_v<grid_of<To>, typename T::grid>) {
    return type<refused<because::meshes_differ, try_<bring_both_to_one_mesh>, typename T::layout, To>>{};
  } else {
    return reduction_kept<typename T::layout, To>(axes_of_layout<To>{});
  }
}
template <class T, class To>
using reshard_counted_of = typename decltype(reshard_verdict<operand<T>, To>())::is;
template <class T, class To>
using reshard_of = typename decltype(without_counts_verdict<operand<T>, reshard_counted_of<T, To>>())::is;

}  // namespace detail

/// Brings a tensor into any layout of its mesh, by the plan between the two (see `plan`).
///
/// To: `Layout<Grid, ...>`, or another tensor's `layout`. x: any layout. Cost, ordering and errors as `convert`, which
/// changes the axes that it names and spells out where each joins; here axes move wherever To has them.
template <class To, AnyTensor T>
  requires detail::is_accepted<detail::reshard_of<T, To>>
[[nodiscard]] auto reshard(T&& x) { return detail::planned<To>("reshard", std::forward<T>(x)); }
template <class To, AnyTensor T>
  requires(!detail::is_accepted<detail::reshard_of<T, To>>)
[[nodiscard]] auto reshard(T&& x) -> detail::reshard_of<T, To>;

/// The same with the extents of the result, which know the counts of dims that are Counted in To, Extent::of_parts.
///
/// extents: of x, the same on all ranks. Errors: another extent than x has; counts that do not fit the axis.
template <class To, AnyTensor T>
  requires detail::is_accepted<detail::reshard_counted_of<T, To>>
[[nodiscard]] auto reshard(T&& x, const Extents<typename detail::bare<T>::dims>& extents) {
  return detail::planned<To>("reshard", std::forward<T>(x), extents);
}
template <class To, AnyTensor T>
  requires(!detail::is_accepted<detail::reshard_counted_of<T, To>>)
[[nodiscard]] auto reshard(T&& x, const Extents<typename detail::tensor_traits<detail::bare<T>>::dims>& extents)
    -> detail::reshard_counted_of<T, To>;

}  // namespace meshwise
