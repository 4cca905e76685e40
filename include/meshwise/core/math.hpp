// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "meshwise/core/detail/rounded.hpp"

namespace meshwise::detail {

/// condition ? a : b, by masks: of a conditional expression the compiler makes a branch around the arithmetic of the
/// other side, because arithmetic may raise floating-point flags, and a loop with a branch is not vectorised.
[[gnu::always_inline]] constexpr float select(bool condition, float a, float b) {
  const std::uint32_t mask = condition ? 0xffffffffU : 0U;
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(a) & mask) | (std::bit_cast<std::uint32_t>(b) & ~mask));
}

}  // namespace meshwise::detail

/// Elementary functions for element-wise loops: in float without branches or calls, so that a plain loop over them is
/// vectorised; in double those of the C library. Template code writes `math::exp(x)` and gets the one for its type.
namespace meshwise::math {

/// e^x in float: within 1 unit in the last place where the result is normal, correctly spaced where it is subnormal,
/// 0 and infinity beyond, NaN for NaN. The bits are the same on every processor.
///
/// Source: argument reduction by n ln 2 in two parts (Cody and Waite), a minimax polynomial of degree 6.
[[gnu::always_inline]] constexpr float exp_fast(float x) {
  using detail::multiply_add;
  const float shifted = multiply_add(x, 0x1.715476p+0F, 0x1.8p23F);  // the integer is in the last bits
  const float n = shifted - 0x1.8p23F;
  float r = multiply_add(n, -0x1.63p-1F, x);
  r = multiply_add(n, 0x1.bd0106p-13F, r);
  float p = 0x1.6a2448p-10F;
  p = multiply_add(p, r, 0x1.1239d6p-7F);
  p = multiply_add(p, r, 0x1.5558f2p-5F);
  p = multiply_add(p, r, 0x1.555492p-3F);
  p = multiply_add(p, r, 0x1.fffffcp-2F);
  p = multiply_add(p, r * r, r) + 1.0F;
  // 2^n in two factors: the first product is exact, the second one rounds, overflows or underflows as it should.
  const std::int32_t k = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(shifted) - 0x4b400000U);
  const std::int32_t half = k >> 1;
  const float first = std::bit_cast<float>(static_cast<std::uint32_t>(half + 127) << 23);
  const float second = std::bit_cast<float>(static_cast<std::uint32_t>(k - half + 127) << 23);
  const float infinity = std::numeric_limits<float>::infinity();
  return detail::select(x > 89.0F, infinity, detail::select(x < -104.0F, 0.0F, p * first * second));
}

/// The hyperbolic tangent in float: within 2 units in the last place, odd to the last bit (also for zero), NaN for NaN.
/// The bits are the same on every processor.
///
/// Source: a minimax polynomial below 0.625, 1 - 2 / (e^2x + 1) above.
[[gnu::always_inline]] constexpr float tanh_fast(float x) {
  using detail::multiply_add;
  const std::uint32_t sign = std::bit_cast<std::uint32_t>(x) & 0x80000000U;
  const float a = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) ^ sign);
  const float z = a * a;
  float p = -0x1.733f28p-8F;
  p = multiply_add(p, z, 0x1.51c5c2p-6F);
  p = multiply_add(p, z, -0x1.b83a1p-5F);
  p = multiply_add(p, z, 0x1.1107acp-3F);
  p = multiply_add(p, z, -0x1.55553ap-2F);
  const float small = multiply_add(p * z, a, a);
  const float large = 1.0F - 2.0F / (exp_fast(a + a) + 1.0F);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(detail::select(a < 0.625F, small, large)) | sign);
}

constexpr float exp(float x) { return exp_fast(x); }
inline double exp(double x) { return std::exp(x); }
constexpr float tanh(float x) { return tanh_fast(x); }
inline double tanh(double x) { return std::tanh(x); }

}  // namespace meshwise::math
