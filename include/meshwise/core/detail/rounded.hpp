// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace meshwise::detail {

/// a * b + c with two roundings, whatever instruction set the surrounding code is compiled for.
///
/// Compilers may fuse a product and a sum when the processor can, so that the same source gives other bits elsewhere;
/// code whose results must not depend on the processor writes its sums of products with this.
template <class T>
[[gnu::always_inline]] constexpr T multiply_add(T a, T b, T c) {
#if defined(__clang__)
#pragma clang fp contract(off)
  const T product = a * b;
  return product + c;
#elif __has_builtin(__builtin_assoc_barrier)
  return __builtin_assoc_barrier(a * b) + c;
#else
  return a * b + c;
#endif
}

}  // namespace meshwise::detail
