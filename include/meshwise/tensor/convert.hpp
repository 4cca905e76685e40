// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "meshwise/layout/plan.hpp"
#include "meshwise/tensor/detail/planned.hpp"

namespace meshwise {

namespace detail {

template <class T>
struct tensor_traits {
  static constexpr bool is_tensor = false;
};
template <class E, class D, class L, class S>
struct tensor_traits<Tensor<E, D, L, S>> {
  static constexpr bool is_tensor = tensor_is_valid<D, L>;
  using verdict = typename decltype(tensor_verdict<D, L>())::is;
  using dims = D;
};

template <class T>
using bare = std::remove_cv_t<std::remove_reference_t<T>>;

}  // namespace detail

/// Any tensor whose dims and layout agree.
template <class T>
concept AnyTensor = detail::tensor_traits<detail::bare<T>>::is_tensor;

namespace detail {

/// An operand's tensor type. Constrained, because compilers may form the return type of a refused overload before they
/// check that its operands are tensors: no verdict may be asked about anything else.
template <AnyTensor T>
using operand = bare<T>;

/// The verdict on converting a tensor: that of its layout, and the tensor has the dims that are to be sharded.
template <class T, class... Ps>
consteval auto tensor_conversion_verdict() {
  using foreign = decltype(without_known<dims_of<typename T::dims>>(joined<decltype(sharded_dim<Ps>())...>()));
  if constexpr (foreign::size != 0) {
    return type<foreign_dim<front<foreign>, typename T::dims>>{};
  } else {
    return type<conversion_verdict<typename T::layout, Ps...>>{};
  }
}

/// The dims that are Counted in To and not by the same axis in From: a change has to be told their counts.
template <class From, class To, class... Ds>
consteval auto dims_to_be_counted(list<Ds...> all) {
  using dims = decltype(all);
  return joined<std::conditional_t<needs_counts(layout_value<From, dims>, layout_value<To, dims>, index_of<Ds, dims>),
                                   list<Ds>, list<>>...>();
}
/// The verdict on a change to a layout that no counts come with.
template <class T, class Verdict>
consteval auto without_counts_verdict() {
  if constexpr (!is_accepted<Verdict>) {
    return type<Verdict>{};
  } else {
    using unknown = decltype(dims_to_be_counted<typename T::layout, typename Verdict::is>(dims_of<typename T::dims>{}));
    if constexpr (unknown::size != 0) {
      return type<refused<because::sizes_of_a_Counted_dim_are_unknown<front<unknown>>,
                          try_<pass_the_counts_of_its_parts>, typename T::layout>>{};
    } else {
      return type<Verdict>{};
    }
  }
}
template <AnyTensor T, class... Ps>
using convert_verdict =
    typename decltype(without_counts_verdict<T, typename decltype(tensor_conversion_verdict<T, Ps...>())::is>())::is;

/// The dims that placements count.
template <class P>
consteval auto counted_dim() {
  if constexpr (entries_of<P>::size == 0) {
    return list<>{};
  } else if constexpr (entry_traits<front<entries_of<P>>>::rule == SplitRule::counted) {
    return list<typename placement_traits<P>::dim>{};
  } else {
    return list<>{};
  }
}
template <class... Ps>
using counted_dims = decltype(joined<decltype(counted_dim<Ps>())...>());

template <AnyTensor T, class... Ps>
using convert_counted_verdict = typename decltype(tensor_conversion_verdict<T, Ps...>())::is;

template <class T, class... Ps>
consteval auto view_verdict() {
  using verdict = convert_verdict<T, Ps...>;
  if constexpr (!is_accepted<verdict>) {
    return type<verdict>{};
  } else if constexpr (plan<typename T::layout, typename verdict::is, typename T::dims>.communicates()) {
    return type<refused<because::view_would_communicate<Ps...>, try_<use_convert_if_communication_is_meant>,
                        typename T::layout>>{};
  } else {
    return type<verdict>{};
  }
}
template <AnyTensor T, class... Ps>
using view_as_verdict = typename decltype(view_verdict<T, Ps...>())::is;

}  // namespace detail

/// Changes how the named axes place a tensor; the other axes stay as they are. The one verb that may communicate.
///
/// Placements: each names one axis, or several for `Shard<dim, major, ..., minor>`; a shard joins at the minor end of
/// its dim. What results is as if they were carried out in order, what happens is the plan between the two layouts (see
/// `plan`). x: any layout. Cost: the plan's, a result of the new local size; nothing where the layout is already so,
/// and no copy in a group of one or for a slice of the outermost dim. An all_reduce of an rvalue is done in place,
/// after a copy if another tensor shares its storage. The blocks of an exchange are made once per pair of layouts and
/// extents (a mesh remembers the last 16); pieces that are finer than two nested runs are packed, which takes memory of
/// their size for the time of the exchange.
/// Ordering: collective over the axes that change, in program order on all their ranks.
/// Errors: refused at compile time for an axis that is not minor-most in its dim, not in the mesh, or a Partial whose
/// reduction would change; at run time what the collective reports.
template <Placement... Ps, AnyTensor T>
  requires detail::is_accepted<detail::convert_verdict<detail::bare<T>, Ps...>>
[[nodiscard]] auto convert(T&& x) {
  return detail::planned<typename detail::convert_verdict<detail::bare<T>, Ps...>::is>("convert", std::forward<T>(x));
}
template <Placement... Ps, AnyTensor T>
  requires(!detail::is_accepted<detail::convert_verdict<detail::bare<T>, Ps...>>)
[[nodiscard]] auto convert(T&& x) -> detail::convert_verdict<detail::bare<T>, Ps...>;

/// The same where a dim becomes Counted: `convert<Shard<tokens, Counted<ep>>>(x, counts)`.
///
/// counts: of each part of the one dim that a placement says is Counted, the same on all ranks; they add up to its
/// extent. A dim that is Counted already gets new counts. Errors: counts that are not as many as the axis has ranks, or
/// have another sum; `mismatch` where ranks that exchange disagree.
template <Placement... Ps, AnyTensor T>
  requires(detail::counted_dims<Ps...>::size == 1 &&
           detail::is_accepted<detail::convert_counted_verdict<detail::bare<T>, Ps...>>)
[[nodiscard]] auto convert(T&& x, std::span<const std::size_t> counts) {
  constexpr std::size_t d = detail::dim_index<detail::front<detail::counted_dims<Ps...>>, detail::bare<T>>;
  Extents<typename detail::bare<T>::dims> extents = x.extents();
  extents[d] = Extent::of_parts({counts.begin(), counts.end()});
  return detail::planned<typename detail::convert_counted_verdict<detail::bare<T>, Ps...>::is>(
      "convert", std::forward<T>(x), extents);
}
template <Placement... Ps, AnyTensor T>
  requires(detail::counted_dims<Ps...>::size == 1 &&
           !detail::is_accepted<detail::convert_counted_verdict<detail::bare<T>, Ps...>>)
[[nodiscard]] auto convert(T&& x, std::span<const std::size_t> counts)
    -> detail::convert_counted_verdict<detail::bare<T>, Ps...>;

/// The same change where it needs no communication; anything else does not compile.
///
/// Placements and x as for `convert`. Cost: at most a local copy. Free are: Replicate to Shard (the own part),
/// Replicate to Partial (coordinate 0 keeps the value), Shard to Partial (the identity outside the own part).
template <Placement... Ps, AnyTensor T>
  requires detail::is_accepted<detail::view_as_verdict<detail::bare<T>, Ps...>>
[[nodiscard]] auto view_as(T&& x) { return convert<Ps...>(std::forward<T>(x)); }
template <Placement... Ps, AnyTensor T>
  requires(!detail::is_accepted<detail::view_as_verdict<detail::bare<T>, Ps...>>)
[[nodiscard]] auto view_as(T&& x) -> detail::view_as_verdict<detail::bare<T>, Ps...>;

}  // namespace meshwise
