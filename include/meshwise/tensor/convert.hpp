// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "meshwise/tensor/detail/step.hpp"

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
template <AnyTensor T, class... Ps>
using convert_verdict = typename decltype(tensor_conversion_verdict<T, Ps...>())::is;

/// The first step of a conversion that communicates, or void.
template <class L, class... Steps>
consteval bool any_communicates(list<Steps...> all) {
  if constexpr (all.size == 0) {
    return false;
  } else {
    return []<class First, class... Rest>(list<First, Rest...>) {
      return communicates(transition<L, First>()) ||
             any_communicates<typename layout_after<L, First>::is>(list<Rest...>{});
    }(all);
  }
}

template <class T, class... Ps>
consteval auto view_verdict() {
  using verdict = convert_verdict<T, Ps...>;
  if constexpr (!is_accepted<verdict>) {
    return type<verdict>{};
  } else if constexpr (any_communicates<typename T::layout>(conversion_steps<typename T::layout, Ps...>())) {
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
/// Placements: each names one axis, or several for `Shard<dim, major, ..., minor>`; they are carried out in order, and
/// a shard joins at the minor end of its dim. x: any layout. Cost: per axis what `Transition` says (see
/// transition_volume), a result of the new local size; nothing where the layout is already so, and no copy in a group
/// of one or for a slice of the outermost dim. An all_reduce of an rvalue is done in place, after a copy if another
/// tensor shares its storage. Ordering: collective over each axis that communicates, in program order on all its ranks.
/// Errors: refused at compile time for an axis that is not minor-most in its dim, not in the mesh, or a Partial whose
/// reduction would change; at run time what the collective reports.
template <Placement... Ps, AnyTensor T>
  requires detail::is_accepted<detail::convert_verdict<detail::bare<T>, Ps...>>
[[nodiscard]] auto convert(T&& x) {
  using L = typename detail::bare<T>::layout;
  return detail::converted<decltype(detail::conversion_steps<L, Ps...>())>(std::forward<T>(x));
}
template <Placement... Ps, AnyTensor T>
  requires(!detail::is_accepted<detail::convert_verdict<detail::bare<T>, Ps...>>)
[[nodiscard]] auto convert(T&& x) -> detail::convert_verdict<detail::bare<T>, Ps...>;

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
