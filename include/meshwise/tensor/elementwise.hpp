// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "meshwise/core/detail/pack_loops.hpp"
#include "meshwise/core/reduction.hpp"
#include "meshwise/tensor/detail/functions.hpp"
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
consteval auto map_by_verdict() {
  using verdict = typename decltype(map_with_verdict<T, F>())::is;
  using E = typename T::element;
  if constexpr (is_accepted<verdict>) {
    return elements_verdict<verdict, take_one_element_and_return_one, F, E, E>();
  } else {
    return type<verdict>{};
  }
}
template <class T, class F>
using map_with = typename decltype(map_by_verdict<operand<T>, F>())::is;

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
consteval auto zip_by_verdict() {
  using verdict = typename decltype(zip_with_verdict<A, B, F>())::is;
  using E = typename A::element;
  if constexpr (is_accepted<verdict>) {
    return elements_verdict<verdict, take_two_elements_and_return_one, F, E, E, E>();
  } else {
    return type<verdict>{};
  }
}
template <class A, class B, class F>
using zip_with = typename decltype(zip_by_verdict<operand<A>, operand<B>, F>())::is;

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

/// Functions of elements that are also functions of packs of them, `of_packs(x...)`.
template <class F>
concept OfPacks = F::has_packs;

/// The same along a walk over a and, beside it, b.
template <std::size_t Rank, class E, class F>
void combine_walk(const Walk<Rank>& walk, const E* a, const E* b, E* out, const F& f) {
  if constexpr (OfPacks<F> && FloatElement<E>) {
    in_packs([&](auto width) {
      using P = typename decltype(width)::template pack<accumulate_t<E>>;
      walk.each([&](std::size_t first, std::size_t second, std::size_t n, std::size_t stride) {
        if (stride == 1) {
          map_packs(
              width, out + first, n, [&](const P& x, const P& y) { return f.of_packs(x, y); }, a + first, b + second);
        } else {
          const P still = static_cast<accumulate_t<E>>(b[second]);
          map_packs(
              width, out + first, n, [&](const P& x) { return f.of_packs(x, still); }, a + first);
        }
      });
    });
  } else {
    walk.each([&](std::size_t first, std::size_t second, std::size_t n, std::size_t stride) {
      combine_runs(a + first, b + second, out + first, n, stride, f);
    });
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
  combine_walk(walk, pa, pb, written(result), f);
  return result;
}

/// f of packs over the elements of x.
template <class T, class F>
auto map_packs_of(T&& x, const F& f) {
  const auto* in = x.local().data();
  const std::size_t n = x.local().size();
  auto result = result_like<typename bare<T>::layout>(std::forward<T>(x));
  auto* out = written(result);
  in_packs([&](auto width) { map_packs(width, out, n, f, in); });
  return result;
}

// In the accumulate type, rounded once; integers wrap.
struct Plus {
  static constexpr bool has_packs = true;
  template <class P>
  P of_packs(const P& a, const P& b) const {
    return a + b;
  }
  template <class E>
  E operator()(E a, E b) const {
    return static_cast<E>(Sum::apply(static_cast<accumulate_t<E>>(a), static_cast<accumulate_t<E>>(b)));
  }
};
struct Minus {
  static constexpr bool has_packs = true;
  template <class P>
  P of_packs(const P& a, const P& b) const {
    return a - b;
  }
  template <class E>
  E operator()(E a, E b) const {
    if constexpr (std::is_integral_v<E>) {
      using W = wrapping_t<E>;
      return static_cast<E>(static_cast<W>(a) - static_cast<W>(b));
    } else {
      return static_cast<E>(static_cast<accumulate_t<E>>(a) - static_cast<accumulate_t<E>>(b));
    }
  }
};
struct Times {
  static constexpr bool has_packs = true;
  template <class P>
  P of_packs(const P& a, const P& b) const {
    return a * b;
  }
  template <class E>
  E operator()(E a, E b) const {
    return static_cast<E>(Product::apply(static_cast<accumulate_t<E>>(a), static_cast<accumulate_t<E>>(b)));
  }
};

/// A factor for elements of E. Errors: of integers one that is no whole number or that 64 bits cannot hold, because a
/// product that is rounded is not linear.
template <class E, class Number>
accumulate_t<E> factor_for(const Number& factor, int rank) {
  if constexpr (std::is_integral_v<E> && std::is_integral_v<Number>) {
    return static_cast<accumulate_t<E>>(factor);
  } else if constexpr (std::is_integral_v<E>) {
    constexpr double limit = 9223372036854775808.0;  // 2^63
    const double value = static_cast<double>(factor);
    const bool fits = value >= -limit && value < limit;
    const std::int64_t whole = fits ? static_cast<std::int64_t>(value) : 0;
    if (!fits || static_cast<double>(whole) != value) {
      fail("operator*", "a whole number as the factor of integers", std::to_string(value),
           "map a function that rounds as you want, or use a floating-point element", rank);
    }
    return static_cast<accumulate_t<E>>(whole);
  } else {
    return static_cast<accumulate_t<E>>(static_cast<double>(factor));
  }
}

}  // namespace detail

/// f of every element: a new tensor of the same layout.
///
/// f: element -> element, without state that depends on the order of calls; a Partial sum wants a `linear(f)`. x: any
/// layout; an rvalue that shares its storage with nobody is written in place. Cost: one pass, at most one allocation.
/// Errors: refused for a non-linear f on a Partial, and for one that is mutable or takes something else.
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
/// its storage with nobody is written in place). Errors: refused for other layouts and an f that is mutable or takes
/// something else; different extents.
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

/// x times a number: linear, so a Partial sum stays one. Integers wrap. Cost as map. Errors: a factor of integers that
/// is no whole number.
template <AnyTensor T, std::convertible_to<double> Number>  // a template: clang 14 tries `double` on size_t * Extent
  requires detail::is_accepted<detail::map_of<T, true>>
[[nodiscard]] auto operator*(T&& x, const Number& factor) {
  using E = typename detail::bare<T>::element;
  using A = accumulate_t<E>;
  const A f = detail::factor_for<E>(factor, x.mesh().world().rank());
  return map(linear([f](E value) { return static_cast<E>(Product::apply(f, static_cast<A>(value))); }),
             std::forward<T>(x));
}

template <AnyTensor T, std::convertible_to<double> Number>
  requires(!detail::is_accepted<detail::map_of<T, true>>)
[[nodiscard]] auto operator*(T&& x, const Number& factor) -> detail::map_of<T, true>;

}  // namespace meshwise
