// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace meshwise::detail {

/// The instruction sets that have kernels. All give the same bits.
enum class Isa : std::uint8_t { baseline, avx2, avx512 };

inline Isa detect_isa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return Isa::avx512;
  }
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool f16c = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & (1U << 29)) != 0;
  if (__builtin_cpu_supports("avx2") && f16c) return Isa::avx2;
#endif
  return Isa::baseline;
}

/// The best instruction set of this processor. The only state is what the processor is.
inline Isa best_isa() {
  static const Isa isa = detect_isa();
  return isa;
}

}  // namespace meshwise::detail
