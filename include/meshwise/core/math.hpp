// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "meshwise/core/detail/isa.hpp"

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
///
/// A program that is built for a baseline processor gets the same bits on every processor. In a build for processors
/// that multiply and add in one step (-march=...) the last bit may differ from that; the bounds below hold for both.
namespace meshwise::math {

/// e^x in float: within 1.1 units in the last place, of the subnormal results too; 0 and infinity beyond the range,
/// NaN for NaN.
///
/// Source: argument reduction by n ln 2 in two parts (Cody and Waite), a minimax polynomial of degree 6.
[[gnu::always_inline]] constexpr float exp_fast(float x) {
  const float shifted = x * 0x1.715476p+0F + 0x1.8p23F;  // the integer is in the last bits
  const float n = shifted - 0x1.8p23F;
  float r = x - n * 0x1.63p-1F;
  r = n * 0x1.bd0106p-13F + r;
  float p = 0x1.6a2448p-10F;
  p = p * r + 0x1.1239d6p-7F;
  p = p * r + 0x1.5558f2p-5F;
  p = p * r + 0x1.555492p-3F;
  p = p * r + 0x1.fffffcp-2F;
  p = p * (r * r) + r + 1.0F;
  // 2^n in two factors: the first product is exact, the second one rounds, overflows or underflows as it should.
  const auto k = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(shifted) - 0x4b400000U);
  const std::int32_t half = k >> 1;
  const float first = std::bit_cast<float>(static_cast<std::uint32_t>(half + 127) << 23);
  const float second = std::bit_cast<float>(static_cast<std::uint32_t>(k - half + 127) << 23);
  const float infinity = std::numeric_limits<float>::infinity();
  return detail::select(x > 89.0F, infinity, detail::select(x < -104.0F, 0.0F, p * first * second));
}

/// The hyperbolic tangent in float: within 2 units in the last place, odd to the last bit (also for zero), NaN for NaN.
///
/// Source: a minimax polynomial below 0.625, 1 - 2 / (e^2x + 1) above.
[[gnu::always_inline]] constexpr float tanh_fast(float x) {
  const std::uint32_t sign = std::bit_cast<std::uint32_t>(x) & 0x80000000U;
  const float a = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) ^ sign);
  const float z = a * a;
  float p = -0x1.733f28p-8F;
  p = p * z + 0x1.51c5c2p-6F;
  p = p * z - 0x1.b83a1p-5F;
  p = p * z + 0x1.1107acp-3F;
  p = p * z - 0x1.55553ap-2F;
  const float near_zero = p * z * a + a;
  const float large = 1.0F - 2.0F / (exp_fast(a + a) + 1.0F);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(detail::select(a < 0.625F, near_zero, large)) | sign);
}

// The functions of the C library by their names in the compiler: <cmath> is as large as ten headers of this library.
constexpr float exp(float x) { return exp_fast(x); }
inline double exp(double x) { return __builtin_exp(x); }
constexpr float tanh(float x) { return tanh_fast(x); }
inline double tanh(double x) { return __builtin_tanh(x); }
inline float log(float x) { return __builtin_logf(x); }
inline double log(double x) { return __builtin_log(x); }
inline float sqrt(float x) { return __builtin_sqrtf(x); }
inline double sqrt(double x) { return __builtin_sqrt(x); }
inline double pow(double x, double y) { return __builtin_pow(x, y); }

}  // namespace meshwise::math

namespace meshwise::detail {

struct ExpOf {
  [[gnu::always_inline]] static constexpr float of(float x) { return math::exp_fast(x); }
};
struct TanhOf {
  [[gnu::always_inline]] static constexpr float of(float x) { return math::tanh_fast(x); }
};

inline constexpr std::size_t math_block = 64;

/// A loop of fixed length without aliasing: at -O2 only such loops are vectorised.
template <class Function>
[[gnu::always_inline]] inline void map_block(const float* x, float* y) {
  float value[math_block];
  for (std::size_t k = 0; k < math_block; ++k) value[k] = Function::of(x[k]);
  std::memcpy(y, value, sizeof value);
}

template <class Function>
[[gnu::always_inline]] inline void map_blocks(const float* x, float* y, std::size_t count) {
  std::size_t i = 0;
  for (; count - i >= math_block; i += math_block) map_block<Function>(x + i, y + i);
  if (i == count) return;
  float rest[math_block] = {};
  std::memcpy(rest, x + i, (count - i) * sizeof(float));
  map_block<Function>(rest, rest);
  std::memcpy(y + i, rest, (count - i) * sizeof(float));
}

#if defined(__x86_64__)
/// Not for AVX-512, with which the compiler would fuse products and sums: all processors give the same bits.
template <class Function>
[[gnu::visibility("hidden")]] __attribute__((target("avx2"))) void map_avx2(const float* x, float* y,
                                                                            std::size_t count) {
  map_blocks<Function>(x, y, count);
}
#endif

template <class Function>
void map(const float* x, float* y, std::size_t count) {
#if defined(__x86_64__)
  if (best_isa() != Isa::baseline) return map_avx2<Function>(x, y, count);
#endif
  map_blocks<Function>(x, y, count);
}

}  // namespace meshwise::detail

namespace meshwise::math {

/// y[i] = exp(x[i]) for i < count, with the widest vectors of this processor that give the bits of `exp_fast`.
/// y may be x; partial overlap is undefined.
inline void exp_all(const float* x, float* y, std::size_t count) { detail::map<detail::ExpOf>(x, y, count); }
inline void exp_all(const double* x, double* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] = exp(x[i]);
}

/// y[i] = tanh(x[i]) for i < count, as `exp_all`.
inline void tanh_all(const float* x, float* y, std::size_t count) { detail::map<detail::TanhOf>(x, y, count); }
inline void tanh_all(const double* x, double* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] = tanh(x[i]);
}

}  // namespace meshwise::math
