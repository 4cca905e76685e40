// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <utility>

#include "meshwise/tensor/elementwise.hpp"

namespace meshwise {

/// A number times x: the same as x times the number.
template <std::convertible_to<double> Number, AnyTensor T>
  requires detail::is_accepted<detail::map_of<T, true>>
[[nodiscard]] auto operator*(const Number& factor, T&& x) { return std::forward<T>(x) * factor; }
template <std::convertible_to<double> Number, AnyTensor T>
  requires(!detail::is_accepted<detail::map_of<T, true>>)
[[nodiscard]] auto operator*(const Number& factor, T&& x) -> detail::map_of<T, true>;

/// Minus x: as x * -1.
template <AnyTensor T>
  requires detail::is_accepted<detail::map_of<T, true>>
[[nodiscard]] auto operator-(T&& x) { return std::forward<T>(x) * -1.0; }
template <AnyTensor T>
  requires(!detail::is_accepted<detail::map_of<T, true>>)
[[nodiscard]] auto operator-(T&& x) -> detail::map_of<T, true>;

/// x by a number, each element rounded once: linear, so a Partial sum stays one.
///
/// Cost as map. By 0 is what the elements say: infinite or NaN. Errors: refused for integers, of which the parts of a
/// sum and the sum round differently, and for a Partial that is no sum.
template <AnyTensor T, std::convertible_to<double> Number>
  requires detail::is_accepted<detail::map_of_reals<T, true>>
[[nodiscard]] auto operator/(T&& x, const Number& divisor) {
  using E = typename detail::bare<T>::element;
  using A = accumulate_t<E>;
  const A d = static_cast<A>(static_cast<double>(divisor));
  return map(linear([d](E value) { return static_cast<E>(static_cast<A>(value) / d); }), std::forward<T>(x));
}
template <AnyTensor T, std::convertible_to<double> Number>
  requires(!detail::is_accepted<detail::map_of_reals<T, true>>)
[[nodiscard]] auto operator/(T&& x, const Number& divisor) -> detail::map_of_reals<T, true>;

/// Multiplies x by a number in place.
///
/// Cost: one pass; a copy of the piece if its storage is shared, so that no other tensor sees the product. Errors: as
/// x * factor.
template <class E, class D, class L, class S, std::convertible_to<double> Number>
  requires detail::is_accepted < detail::map_of < Tensor<E, D, L, S>,
true >> Tensor<E, D, L, S>& operator*=(Tensor<E, D, L, S>& x, const Number& factor) {
  x = std::move(x) * factor;
  return x;
}
template <class E, class D, class L, class S, std::convertible_to<double> Number>
  requires(!detail::is_accepted<detail::map_of<Tensor<E, D, L, S>, true>>)
auto operator*=(Tensor<E, D, L, S>& x, const Number& factor) -> detail::map_of<Tensor<E, D, L, S>, true>;

}  // namespace meshwise
