// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "meshwise/core/detail/pack.hpp"
#include "meshwise/core/math.hpp"

namespace meshwise::math {

/// exp_fast of each.
template <std::size_t Bytes>
[[gnu::always_inline]] inline detail::Pack<float, Bytes> exp(const detail::Pack<float, Bytes>& x) {
  using P = detail::Pack<float, Bytes>;
  using Bits = typename P::Bits;
  typedef std::int32_t Integers __attribute__((vector_size(Bytes)));
  const P shifted = x * P(0x1.715476p+0F) + P(0x1.8p23F);
  const P n = shifted - P(0x1.8p23F);
  P r = x - n * P(0x1.63p-1F);
  r = n * P(0x1.bd0106p-13F) + r;
  P p = P(0x1.6a2448p-10F);
  p = p * r + P(0x1.1239d6p-7F);
  p = p * r + P(0x1.5558f2p-5F);
  p = p * r + P(0x1.555492p-3F);
  p = p * r + P(0x1.fffffcp-2F);
  p = p * (r * r) + r + P(1.0F);
  const Integers k = (Integers)((Bits)shifted.v - 0x4b400000U);
  const Integers half = k >> 1;
  const P first((typename P::Vector)((Bits)(half + 127) << 23));
  const P second((typename P::Vector)((Bits)(k - half + 127) << 23));
  const P infinity(std::numeric_limits<float>::infinity());
  return select(x > P(89.0F), infinity, select(x < P(-104.0F), P(0.0F), p * first * second));
}
template <std::size_t Bytes>
[[gnu::always_inline]] inline detail::Pack<double, Bytes> exp(const detail::Pack<double, Bytes>& x) {
  detail::Pack<double, Bytes> y;
  for (std::size_t k = 0; k < detail::Pack<double, Bytes>::lanes; ++k) y.v[k] = exp(static_cast<double>(x.v[k]));
  return y;
}

/// The square root of each. That of the C library tells errno of negative numbers, so that compilers do not take the
/// processor's for many.
template <class A, std::size_t Bytes>
[[gnu::always_inline]] inline detail::Pack<A, Bytes> sqrt(const detail::Pack<A, Bytes>& x) {
  detail::Pack<A, Bytes> y;
#if __has_builtin(__builtin_elementwise_sqrt)
  y.v = __builtin_elementwise_sqrt(x.v);
#elif defined(__x86_64__)
  if constexpr (Bytes >= 16) {
    typedef A Part __attribute__((vector_size(16)));  // as fast by parts, and at home on every processor
    Part parts[Bytes / 16];
    std::memcpy(parts, &x.v, sizeof parts);
    for (Part& part : parts) {
      if constexpr (sizeof(A) == 4) {
        part = __builtin_ia32_sqrtps(part);
      } else {
        part = __builtin_ia32_sqrtpd(part);
      }
    }
    std::memcpy(&y.v, parts, sizeof parts);
  } else {
    y.v[0] = sqrt(static_cast<A>(x.v[0]));
  }
#else
  for (std::size_t k = 0; k < detail::Pack<A, Bytes>::lanes; ++k) y.v[k] = sqrt(static_cast<A>(x.v[k]));
#endif
  return y;
}

}  // namespace meshwise::math
