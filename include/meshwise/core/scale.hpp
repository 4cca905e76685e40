// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "meshwise/core/combination.hpp"
#include "meshwise/core/detail/fold.hpp"
#include "meshwise/core/detail/isa.hpp"
#include "meshwise/core/element.hpp"
#include "meshwise/core/error.hpp"

namespace meshwise {

/// to[i] = from[i] * factor for `count` elements; see scale_elements.
using Scale = void (*)(std::size_t count, const void* from, void* to, double factor);

/// to[i] = from[i] / ranks for `count` elements; see average_elements.
using Divide = void (*)(std::size_t count, const void* from, void* to, int ranks);

namespace detail {

template <class T, class Op>
void with_value(Isa isa, const void* from, void* to, std::size_t bytes, accumulate_t<T> value) {
  const char* const source = static_cast<const char*>(from);
  char* const target = static_cast<char*>(to);
#if defined(__x86_64__)
  if (isa == Isa::avx512) return avx512::with_value<T, Op>(source, target, bytes, value);
  if (isa == Isa::avx2) return avx2::with_value<T, Op>(source, target, bytes, value);
#endif
  static_cast<void>(isa);
  baseline::with_value<T, Op>(source, target, bytes, value);
}

/// A whole number modulo 2^64.
inline std::uint64_t whole_factor(double factor) {
  if (factor >= -0x1p63 && factor < 0) {
    const auto whole = static_cast<std::int64_t>(factor);
    if (static_cast<double>(whole) == factor) return static_cast<std::uint64_t>(whole);
  } else if (factor >= 0 && factor < 0x1p64) {
    const auto whole = static_cast<std::uint64_t>(factor);
    if (static_cast<double>(whole) == factor) return whole;
  }
  fail("scale_elements", "a whole factor from -2^63 to below 2^64 for integers", std::to_string(factor),
       "convert the data to a float type, or divide after the sum");
}

template <class T>
void scale(std::size_t count, const void* from, void* to, double factor) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    with_value<U, Product>(best_isa(), from, to, count * sizeof(T), static_cast<U>(whole_factor(factor)));
  } else {
    with_value<T, Product>(best_isa(), from, to, count * sizeof(T), static_cast<accumulate_t<T>>(factor));
  }
}

template <class T>
void average(std::size_t count, const void* from, void* to, int ranks) {
  if (ranks < 1) fail("average_elements", "at least 1 rank", std::to_string(ranks), "pass the size of the group");
  if constexpr (std::is_integral_v<T>) {
    const char* const source = static_cast<const char*>(from);
    char* const target = static_cast<char*>(to);
    for (std::size_t i = 0; i < count * sizeof(T); i += sizeof(T)) {
      T x;
      std::memcpy(&x, source + i, sizeof(T));
      x = Average::finish(x, ranks);
      std::memcpy(target + i, &x, sizeof(T));
    }
  } else {
    with_value<T, Quotient>(best_isa(), from, to, count * sizeof(T), static_cast<accumulate_t<T>>(ranks));
  }
}

}  // namespace detail

/// The kernel of scale_elements for elements of T.
template <Element T>
Scale scale_kernel() {
  return detail::scale<T>;
}

/// The kernel of average_elements for elements of T.
template <Element T>
Divide average_kernel() {
  return detail::average<T>;
}

/// Multiplies elements by a number, as PreMultipliedSum says: in the accumulate type, to which the factor is converted
/// first, then rounded once to T; integers wrap modulo 2^bits.
///
/// count: elements. from, to: any alignment, null if count is 0; to may be from, partial overlap is undefined.
/// Cost: one pass; no allocation. The bits do not depend on the processor.
/// Errors: `invalid_argument` for integers, if the factor is not a whole number from -2^63 to below 2^64.
template <Element T>
void scale_elements(std::size_t count, const void* from, void* to, double factor) {
  detail::scale<T>(count, from, to, factor);
}

/// Divides sums that are stored as T by the number of their contributions: the last step of an Average whose sum was
/// formed in several places. Floats: divided in the accumulate type and rounded to T; integers: truncated.
///
/// count: elements. from, to: any alignment, null if count is 0; to may be from, partial overlap is undefined.
/// Cost: one pass; no allocation. The bits do not depend on the processor.
/// Errors: `invalid_argument` for less than 1 rank.
template <Element T>
void average_elements(std::size_t count, const void* from, void* to, int ranks) {
  detail::average<T>(count, from, to, ranks);
}

}  // namespace meshwise
