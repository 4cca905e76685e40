// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

namespace meshwise {

/// A function that says it is linear; made by `linear`.
template <class F>
struct Linear {
  F f;
};

/// A function of two elements that says it is linear in the first one; made by `linear_in_first`.
template <class F>
struct LinearInFirst {
  F f;
};

/// Marks a function as linear, so that `map` and `zip` apply it to a Partial sum, summand by summand.
///
/// f: of one element, with f(x + y) = f(x) + f(y); or of two, linear in both together: f(x + y, u + v) = f(x, u) +
/// f(y, v), as in a x + b y. A constant term is not linear: every rank would add it. Nothing checks the claim.
template <class F>
Linear<F> linear(F f) {
  return {std::move(f)};
}

/// Marks a function of two elements as linear in the first one, whatever the second is.
///
/// f: f(x + y, u) = f(x, u) + f(y, u). Then the first operand of `zip` may be a Partial sum, like a gradient that is
/// multiplied by a slope. Nothing checks the claim.
template <class F>
LinearInFirst<F> linear_in_first(F f) {
  return {std::move(f)};
}

namespace detail {

template <class F>
inline constexpr bool is_linear = false;
template <class F>
inline constexpr bool is_linear<Linear<F>> = true;
template <class F>
inline constexpr bool is_linear_in_first = false;
template <class F>
inline constexpr bool is_linear_in_first<LinearInFirst<F>> = true;

template <class F>
const F& function_of(const F& f) {
  return f;
}
template <class F>
const F& function_of(const Linear<F>& f) {
  return f.f;
}
template <class F>
const F& function_of(const LinearInFirst<F>& f) {
  return f.f;
}

}  // namespace detail
}  // namespace meshwise
