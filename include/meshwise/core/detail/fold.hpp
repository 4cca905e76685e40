// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
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

/// The mask of sixteen lanes. Compilers differ in whether their built-in functions take it signed.
struct AllLanes {
  constexpr operator short() const { return -1; }
  constexpr operator unsigned short() const { return 0xffff; }
};

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
