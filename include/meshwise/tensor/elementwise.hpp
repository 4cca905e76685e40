// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "meshwise/tensor/detail/verdicts.hpp"
#include "meshwise/tensor/detail/walk.hpp"

namespace meshwise {

/// Marks a function of one element as linear, f(x + y) = f(x) + f(y), so that it may be applied to a Partial.
template <class F>
struct Linear {
  F f;
};
template <class F>
Linear<F> linear(F f) {
  return {std::move(f)};
}

namespace detail {

template <class F>
inline constexpr bool is_linear = false;
template <class F>
inline constexpr bool is_linear<Linear<F>> = true;

template <class F>
const F& function_of(const F& f) {
  return f;
}
template <class F>
const F& function_of(const Linear<F>& f) {
  return f.f;
}

/// A user's function on a Partial may be linear without saying so: name both remedies.
template <class Verdict>
struct if_not_linear {
  using is = Verdict;
};
template <class A, class Remedy, class... Context>
struct if_not_linear<refused<because::nonlinear_function_of_Partial<A>, try_<Remedy>, Context...>> {
  using is =
      refused<because::nonlinear_function_of_Partial<A>, try_<wrap_it_in_linear_if_it_is, or_<Remedy>>, Context...>;
};
template <class T, class F>
consteval auto map_with_verdict() {
  if constexpr (!is_linear<F> && is_accepted<map_of<T, true>>) {
    return if_not_linear<map_of<T>>{};
  } else {
    return type<map_of<T, is_linear<F>>>{};
  }
}
template <class T, class F>
using map_with = typename decltype(map_with_verdict<operand<T>, F>())::is;

/// f over the elements of a, beside those of b repeated over the dims it lacks.
template <class Result, class A, class B, class F>
auto zip_local(const char* verb, A&& a, const B& b, const F& f) {
  using E = typename bare<A>::element;
  check_operands(verb, a, b);
  const auto walk = walk_beside<typename B::dims>(a);
  const auto* pa = a.local().data();
  const auto* pb = b.local().data();
  auto result = result_like<Result>(std::forward<A>(a));
  auto* out = written(result);
  walk.each([&](std::size_t first, std::size_t second, std::size_t n, std::size_t stride) {
    const auto* x = pa + first;
    const auto* y = pb + second;
    auto* z = out + first;
    if (stride == 1) {
      for (std::size_t i = 0; i < n; ++i) z[i] = static_cast<E>(f(x[i], y[i]));
    } else {
      const auto value = *y;
      for (std::size_t i = 0; i < n; ++i) z[i] = static_cast<E>(f(x[i], value));
    }
  });
  return result;
}

struct Plus {
  template <class E>
  E operator()(E a, E b) const {
    return static_cast<E>(a + b);
  }
};
struct Minus {
  template <class E>
  E operator()(E a, E b) const {
    return static_cast<E>(a - b);
  }
};
struct Times {
  template <class E>
  E operator()(E a, E b) const {
    return static_cast<E>(a * b);
  }
};

}  // namespace detail

/// f of every element: a new tensor of the same layout.
///
/// f: element -> element, without state that depends on the order of calls; wrap it in `linear` to apply it to a
/// Partial. x: any layout; an rvalue that shares its storage with nobody is written in place. Cost: one pass, at most
/// one allocation. Errors: refused for a non-linear f on a Partial.
template <class F, AnyTensor T>
  requires detail::is_accepted<detail::map_with<T, F>>
[[nodiscard]] auto map(const F& f, T&& x) {
  const auto* in = x.local().data();
  const std::size_t n = x.local().size();
  auto result = detail::result_like<typename detail::bare<T>::layout>(std::forward<T>(x));
  auto* out = detail::written(result);
  const auto& function = detail::function_of(f);
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<typename detail::bare<T>::element>(function(in[i]));
  return result;
}
template <class F, AnyTensor T>
  requires(!detail::is_accepted<detail::map_with<T, F>>)
[[nodiscard]] auto map(const F& f, T&& x) -> detail::map_with<T, F>;

/// f of the elements of a and b, where b has the dims of a or some of them in the same order and is repeated over the
/// rest.
///
/// a, b: placed alike on the dims they share, neither a Partial. Cost: one pass, at most one allocation (an rvalue a
/// that shares its storage with nobody is written in place). Errors: refused for other layouts; different extents.
template <class F, AnyTensor A, AnyTensor B>
  requires detail::is_accepted<detail::elementwise_of<A, B, detail::Combining::nonlinear>>
[[nodiscard]] auto zip(const F& f, A&& a, const B& b) {
  return detail::zip_local<typename detail::bare<A>::layout>("zip", std::forward<A>(a), b, f);
}
template <class F, AnyTensor A, AnyTensor B>
  requires(!detail::is_accepted<detail::elementwise_of<A, B, detail::Combining::nonlinear>>)
[[nodiscard]] auto zip(const F& f, A&& a, const B& b) -> detail::elementwise_of<A, B, detail::Combining::nonlinear>;

/// Sum of two tensors; b may have fewer dims (see zip). Both Partial, or neither. Cost and errors as zip.
template <AnyTensor A, AnyTensor B>
  requires detail::is_accepted<detail::elementwise_of<A, B, detail::Combining::additive>>
[[nodiscard]] auto operator+(A&& a, const B& b) {
  return detail::zip_local<typename detail::bare<A>::layout>("operator+", std::forward<A>(a), b, detail::Plus{});
}
template <AnyTensor A, AnyTensor B>
  requires(!detail::is_accepted<detail::elementwise_of<A, B, detail::Combining::additive>>)
[[nodiscard]] auto operator+(A&& a, const B& b) -> detail::elementwise_of<A, B, detail::Combining::additive>;

/// Difference; rules as operator+.
template <AnyTensor A, AnyTensor B>
  requires detail::is_accepted<detail::elementwise_of<A, B, detail::Combining::additive>>
[[nodiscard]] auto operator-(A&& a, const B& b) {
  return detail::zip_local<typename detail::bare<A>::layout>("operator-", std::forward<A>(a), b, detail::Minus{});
}
template <AnyTensor A, AnyTensor B>
  requires(!detail::is_accepted<detail::elementwise_of<A, B, detail::Combining::additive>>)
[[nodiscard]] auto operator-(A&& a, const B& b) -> detail::elementwise_of<A, B, detail::Combining::additive>;

/// Element-wise product; b may have fewer dims (see zip). One operand may be a Partial sum, then so is the result.
template <AnyTensor A, AnyTensor B>
  requires detail::is_accepted<detail::elementwise_of<A, B, detail::Combining::multiplicative>>
[[nodiscard]] auto operator*(A&& a, const B& b) {
  using verdict = detail::elementwise_of<A, B, detail::Combining::multiplicative>;
  return detail::zip_local<typename verdict::is>("operator*", std::forward<A>(a), b, detail::Times{});
}
template <AnyTensor A, AnyTensor B>
  requires(!detail::is_accepted<detail::elementwise_of<A, B, detail::Combining::multiplicative>>)
[[nodiscard]] auto operator*(A&& a, const B& b) -> detail::elementwise_of<A, B, detail::Combining::multiplicative>;

/// x times a number: linear, so a Partial sum stays one. Cost as map.
template <AnyTensor T>
  requires detail::is_accepted<detail::map_of<T, true>>
[[nodiscard]] auto operator*(T&& x, double factor) {
  using E = typename detail::bare<T>::element;
  const auto f = static_cast<accumulate_t<E>>(factor);
  return map(linear([f](E value) { return static_cast<E>(f * static_cast<accumulate_t<E>>(value)); }),
             std::forward<T>(x));
}

template <AnyTensor T>
  requires(!detail::is_accepted<detail::map_of<T, true>>)
[[nodiscard]] auto operator*(T&& x, double factor) -> detail::map_of<T, true>;

/// Adds b to a in place; b may have fewer dims. Both Partial, or neither.
///
/// Cost: one pass; a copy of a's piece if its storage is shared. Errors as operator+.
template <class E, class D, class L, class S, AnyTensor B>
  requires detail::is_accepted<detail::elementwise_of<Tensor<E, D, L, S>, B, detail::Combining::additive>>
      Tensor<E, D, L, S>
&operator+=(Tensor<E, D, L, S>& a, const B& b) {
  a.mutable_local();  // take the storage alone, so that the sum is written where a is
  a = std::move(a) + b;
  return a;
}
template <class E, class D, class L, class S, AnyTensor B>
  requires(!detail::is_accepted<detail::elementwise_of<Tensor<E, D, L, S>, B, detail::Combining::additive>>)
auto operator+=(Tensor<E, D, L, S>& a, const B& b)
    -> detail::elementwise_of<Tensor<E, D, L, S>, B, detail::Combining::additive>;

}  // namespace meshwise
