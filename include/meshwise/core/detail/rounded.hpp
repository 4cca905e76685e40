// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

namespace meshwise::detail {

/// a * b + c with two roundings, whatever instruction set the surrounding code is compiled for.
///
/// Compilers fuse a product and a sum when the processor can, and then the same source gives other bits elsewhere. Code
/// whose results must not depend on the processor writes its sums of products with this. The product passes through
/// an empty piece of assembly, which also keeps the surrounding loop from being vectorised.
[[gnu::always_inline]] constexpr double multiply_add(double a, double b, double c) {
  double product = a * b;
  if (!std::is_constant_evaluated()) {
#if defined(__x86_64__)
    asm("" : "+x"(product));
#elif defined(__aarch64__)
    asm("" : "+w"(product));
#else
    asm("" : "+m"(product));
#endif
  }
  return product + c;
}

}  // namespace meshwise::detail
