// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "meshwise/core/detail/fold.hpp"
#include "meshwise/core/detail/isa.hpp"
#include "meshwise/core/detail/round_to_odd.hpp"
#include "meshwise/core/element.hpp"

#define MESHWISE_FOLD_ISA baseline
#define MESHWISE_FOLD_WIDTH 16
#define MESHWISE_FOLD_TARGET
#include "meshwise/core/detail/recode.inc"
#undef MESHWISE_FOLD_ISA
#undef MESHWISE_FOLD_WIDTH
#undef MESHWISE_FOLD_TARGET

#if defined(__x86_64__)
#define MESHWISE_FOLD_ISA avx2
#define MESHWISE_FOLD_WIDTH 32
#define MESHWISE_FOLD_TARGET __attribute__((target("avx2,f16c")))
#include "meshwise/core/detail/recode.inc"
#undef MESHWISE_FOLD_ISA
#undef MESHWISE_FOLD_WIDTH
#undef MESHWISE_FOLD_TARGET

#define MESHWISE_FOLD_ISA avx512
#define MESHWISE_FOLD_WIDTH 64
#define MESHWISE_FOLD_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#include "meshwise/core/detail/recode.inc"
#undef MESHWISE_FOLD_ISA
#undef MESHWISE_FOLD_WIDTH
#undef MESHWISE_FOLD_TARGET
#endif

namespace meshwise::detail {

/// One pass over contiguous elements.
using Recode = void (*)(std::size_t count, const char* from, char* to);

/// Doubles as floats whose rounding to fewer bits is the only one.
inline void doubles_to_odd(std::size_t count, const char* from, char* to) {
  for (std::size_t i = 0; i < count; ++i) {
    double wide;
    std::memcpy(&wide, from + i * sizeof(double), sizeof(double));
    const float value = round_to_odd(wide);
    std::memcpy(to + i * sizeof(float), &value, sizeof(float));
  }
}

template <class T>
Recode to_float(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::avx512) return avx512::to_float<T>;
  if (isa == Isa::avx2) return avx2::to_float<T>;
#endif
  static_cast<void>(isa);
  return baseline::to_float<T>;
}

template <class T>
Recode from_float(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::avx512) return avx512::from_float<T>;
  if (isa == Isa::avx2) return avx2::from_float<T>;
#endif
  static_cast<void>(isa);
  return baseline::from_float<T>;
}

inline void recode_copy(std::size_t bytes, const void* from, void* to) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

/// Two passes, through floats that stay in the first-level cache.
inline void recode_through_floats(std::size_t count, const char* from, std::size_t from_size, Recode first, char* to,
                                  std::size_t to_size, Recode second) {
  constexpr std::size_t most = 2048;
  alignas(64) char floats[most * sizeof(float)];
  while (count > 0) {
    const std::size_t n = count < most ? count : most;
    first(n, from, floats);
    second(n, floats, to);
    from += n * from_size;
    to += n * to_size;
    count -= n;
  }
}

}  // namespace meshwise::detail
