// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "meshwise/core/combination.hpp"
#include "meshwise/core/element.hpp"
#include "meshwise/core/reduction.hpp"

namespace meshwise::detail {

/// The unit in which streaming stores go to memory, in bytes.
inline constexpr std::size_t line = 64;

/// a / b, in which the kernels divide sums of floats.
struct Quotient {
  template <class A>
  static constexpr A apply(A a, A b) {
    return a / b;
  }
};

/// The mask of all of sixteen or eight lanes. Compilers differ in whether their built-in functions take it signed.
struct AllLanes {
  constexpr operator short() const { return -1; }
  constexpr operator unsigned short() const { return 0xffff; }
  constexpr operator char() const { return static_cast<char>(-1); }
  constexpr operator signed char() const { return -1; }
  constexpr operator unsigned char() const { return 0xff; }
};

/// Whether C makes a NaN of T as `joined_nan` says. (Minima and maxima need no help; others have none.)
template <class T, class C>
inline constexpr bool joins_nan =
    !std::is_integral_v<T> && (std::is_same_v<C, Average> || std::is_same_v<C, Sum> || std::is_same_v<C, Product>);

/// What a sum or a product of a and b is that is NaN: of several NaN, the one that has the bits of all, quiet; the
/// default NaN if there is none. Processors and compilers differ in which of two it would be, from lane to lane.
template <class A>
constexpr A joined_nan(A a, A b) {
  using Limits = std::numeric_limits<A>;
  auto bits = std::bit_cast<float_bits_t<A>>(Limits::quiet_NaN());
  if (a != a) bits |= std::bit_cast<float_bits_t<A>>(a);
  if (b != b) bits |= std::bit_cast<float_bits_t<A>>(b);
  return std::bit_cast<A>(bits);
}

/// One element folded as the vectors are. exact: a NaN is made as `joined_nan` says.
template <class T, class C, bool exact>
[[gnu::always_inline]] inline accumulate_t<T> folded(const void* const* from, int sources, std::size_t first) {
  T x;
  __builtin_memcpy(&x, static_cast<const char*>(from[0]) + first, sizeof(T));
  auto a = static_cast<accumulate_t<T>>(x);
  if constexpr (is_logical<C>) a = static_cast<T>(a != 0);
  for (int s = 1; s < sources; ++s) {
    __builtin_memcpy(&x, static_cast<const char*>(from[s]) + first, sizeof(T));
    const auto b = static_cast<accumulate_t<T>>(x);
    const auto both = reduction_of<C>::apply(a, b);
    if constexpr (exact && joins_nan<T, C>) {
      a = both == both ? both : joined_nan(a, b);
    } else {
      a = both;
    }
  }
  if constexpr (std::is_same_v<C, Average>) a = Average::finish(a, sources);
  return a;
}

/// A stretch of elements, with every NaN as it should be.
template <class T, class C>
[[gnu::noinline, gnu::cold, gnu::visibility("hidden")]] void fold_exactly(char* to, const void* const* from,
                                                                          int sources, std::size_t first,
                                                                          std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += sizeof(T)) {
    const T x = static_cast<T>(folded<T, C, true>(from, sources, first + i));
    __builtin_memcpy(to + i, &x, sizeof(T));
  }
}

/// One element. What is NaN once remains so, so that it shows in the end.
template <class T, class C>
[[gnu::always_inline]] inline void fold_one(char* to, const void* const* from, int sources, std::size_t first) {
  const accumulate_t<T> a = folded<T, C, false>(from, sources, first);
  if constexpr (joins_nan<T, C>) {
    if (a != a) [[unlikely]]
      return fold_exactly<T, C>(to, from, sources, first, sizeof(T));
  }
  const T x = static_cast<T>(a);
  __builtin_memcpy(to, &x, sizeof(T));
}

}  // namespace meshwise::detail

#define MESHWISE_FOLD_ISA baseline
#define MESHWISE_FOLD_WIDTH 16
#define MESHWISE_FOLD_TARGET
#include "meshwise/core/detail/accumulators.inc"
#include "meshwise/core/detail/fold.inc"
#undef MESHWISE_FOLD_ISA
#undef MESHWISE_FOLD_WIDTH
#undef MESHWISE_FOLD_TARGET

#if defined(__x86_64__)
#define MESHWISE_FOLD_ISA avx2
#define MESHWISE_FOLD_WIDTH 32
#define MESHWISE_FOLD_TARGET __attribute__((target("avx2,f16c")))
#include "meshwise/core/detail/accumulators.inc"
#include "meshwise/core/detail/fold.inc"
#undef MESHWISE_FOLD_ISA
#undef MESHWISE_FOLD_WIDTH
#undef MESHWISE_FOLD_TARGET

#define MESHWISE_FOLD_ISA avx512
#define MESHWISE_FOLD_WIDTH 64
#define MESHWISE_FOLD_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#include "meshwise/core/detail/accumulators.inc"
#include "meshwise/core/detail/fold.inc"
#undef MESHWISE_FOLD_ISA
#undef MESHWISE_FOLD_WIDTH
#undef MESHWISE_FOLD_TARGET
#endif
