// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>
#include <utility>

#include "meshwise/core/element.hpp"
#include "meshwise/layout/detail/list.hpp"
#include "meshwise/layout/refused.hpp"
#include "meshwise/tensor/linear.hpp"

namespace meshwise::detail {

/// What a function is that may say of itself that it is linear.
template <class F>
using function_in = std::remove_cvref_t<decltype(function_of(std::declval<const F&>()))>;

/// Verdict list of a user's function that is called with these arguments and returns something that makes an E: Refusal
/// if it does not, or that it is one whose calls change it.
template <class E, class Refusal, class F, class... Args>
consteval auto function_fits() {
  if constexpr (requires(const F& f, const Args&... args) { static_cast<E>(function_of(f)(args...)); }) {
    return list<>{};
  } else if constexpr (requires(function_in<F> f, const Args&... args) { static_cast<E>(f(args...)); }) {
    return list<refused<because::function_is_mutable, try_<capture_by_reference_instead_of_mutable>>>{};
  } else {
    return list<Refusal>{};
  }
}

/// The verdict on a function of elements E: `Otherwise`, if it is one.
template <class Otherwise, class Remedy, class F, class E, class... Args>
consteval auto elements_verdict() {
  using refusal = refused<because::function_does_not_take_the_elements, try_<Remedy>, E>;
  return first_of(function_fits<E, refusal, F, Args...>() + list<Otherwise>{});
}

}  // namespace meshwise::detail
