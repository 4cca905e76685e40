// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "meshwise/tensor/detail/verdicts.hpp"
#include "meshwise/tensor/detail/walk.hpp"
#include "meshwise/tensor/linear.hpp"

namespace meshwise {

namespace detail {

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

/// How a function of two elements treats Partial operands, by what it says of itself.
template <class F>
inline constexpr Combining combining = is_linear<F>            ? Combining::additive
                                       : is_linear_in_first<F> ? Combining::linear_in_first
                                                               : Combining::nonlinear;

template <class A, class B, class F>
consteval auto zip_with_verdict() {
  using verdict = elementwise_of<A, B, combining<F>>;
  if constexpr (combining<F> == Combining::nonlinear && is_accepted<elementwise_of<A, B, Combining::additive>>) {
    return if_not_linear<verdict>{};
  } else {
    return type<verdict>{};
  }
}
template <class A, class B, class F>
using zip_with = typename decltype(zip_with_verdict<operand<A>, operand<B>, F>())::is;

/// out[i] = f(a[i], b[i]) for one run, or f(a[i], *b) if b stands still. out may be a.
template <class E, class F>
void combine_runs(const E* a, const E* b, E* out, std::size_t n, std::size_t stride, const F& f) {
  if (stride == 1) {
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<E>(f(a[i], b[i]));
  } else {
    const E value = *b;
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<E>(f(a[i], value));
  }
}

/// f over the elements of a, beside those of b repeated over the dims it lacks.
template <class Result, class A, class B, class F>
auto zip_local(const char* verb, A&& a, const B& b, const F& f) {
  check_operands(verb, a, b);
  const auto walk = walk_beside<typename B::dims>(a);
  const auto* pa = a.local().data();
  const auto* pb = b.local().data();
  auto result = result_like<Result>(std::forward<A>(a));
  auto* out = written(result);
  walk.each([&](std::size_t first, std::size_t second, std::size_t n, std::size_t stride) {
    combine_runs(pa + first, pb + second, out + first, n, stride, f);
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
/// f: element -> element, without state that depends on the order of calls; a Partial sum wants a `linear(f)`. x: any
/// layout; an rvalue that shares its storage with nobody is written in place. Cost: one pass, at most one allocation.
/// Errors: refused for a non-linear f on a Partial.
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
/// f: two elements -> element, without state that depends on the order of calls. a, b: placed alike on the dims they
/// share. Neither is a Partial, unless f says that it is linear: of a `linear(f)` both may owe the same sum, of a
/// `linear_in_first(f)` the first one may owe a sum. Cost: one pass, at most one allocation (an rvalue a that shares
/// its storage with nobody is written in place). Errors: refused for other layouts; different extents.
template <class F, AnyTensor A, AnyTensor B>
  requires detail::is_accepted<detail::zip_with<A, B, F>>
[[nodiscard]] auto zip(const F& f, A&& a, const B& b) {
  return detail::zip_local<typename detail::bare<A>::layout>("zip", std::forward<A>(a), b, detail::function_of(f));
}
template <class F, AnyTensor A, AnyTensor B>
  requires(!detail::is_accepted<detail::zip_with<A, B, F>>)
[[nodiscard]] auto zip(const F& f, A&& a, const B& b) -> detail::zip_with<A, B, F>;

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

}  // namespace meshwise
