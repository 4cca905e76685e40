// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "meshwise/core/detail/round_to_odd.hpp"

namespace meshwise {

namespace detail {

// In both formats the subnormals are decoded as 1.f - 1 in units of the smallest normal value, and encoded by adding
// the power of two whose last place is their quantum: exact steps without a loop and without subnormal floats.

constexpr std::uint8_t f8e4m3_bits(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  std::uint32_t code = 0;
  if (magnitude >= 0x3c800000U) {  // 2^-6: normal in both formats
    code = (magnitude - 0x3c000000U + 0x7ffffU + ((magnitude >> 20) & 1U)) >> 20;
    if (code > 0x7fU) code = 0x7fU;
  } else {
    code = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0x1p14F) - 0x46800000U;
  }
  return static_cast<std::uint8_t>(((bits >> 24) & 0x80U) | code);
}

constexpr float f8e4m3_value(std::uint8_t bits) {
  const std::uint32_t sign = (std::uint32_t{bits} & 0x80U) << 24;
  const std::uint32_t code = std::uint32_t{bits} & 0x7fU;
  std::uint32_t result = (code << 20) + 0x3c000000U;
  if (code == 0x7fU) result = 0x7ff00000U;
  if (code < 0x08U) result = std::bit_cast<std::uint32_t>(std::bit_cast<float>((code << 20) + 0x3c800000U) - 0x1p-6F);
  return std::bit_cast<float>(sign | result);
}

constexpr std::uint8_t f8e5m2_bits(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  std::uint32_t code = 0;
  if (magnitude > 0x7f800000U) {
    code = 0x7eU | ((magnitude >> 21) & 0x03U);
  } else if (magnitude >= 0x47800000U) {  // 65536 and above
    code = 0x7cU;
  } else if (magnitude >= 0x38800000U) {  // 2^-14: normal in both formats
    code = (magnitude - 0x38000000U + 0xfffffU + ((magnitude >> 21) & 1U)) >> 21;
  } else {
    code = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0x1p7F) - 0x43000000U;
  }
  return static_cast<std::uint8_t>(((bits >> 24) & 0x80U) | code);
}

constexpr float f8e5m2_value(std::uint8_t bits) {
  const std::uint32_t sign = (std::uint32_t{bits} & 0x80U) << 24;
  const std::uint32_t code = std::uint32_t{bits} & 0x7fU;
  std::uint32_t result = (code << 21) + 0x38000000U;
  if (code >= 0x7cU) result = (code << 21) + 0x70000000U;
  if (code > 0x7cU) result |= 0x00400000U;
  if (code < 0x04U) result = std::bit_cast<std::uint32_t>(std::bit_cast<float>((code << 21) + 0x38800000U) - 0x1p-14F);
  return std::bit_cast<float>(sign | result);
}

}  // namespace detail

/// OCP 8-bit float E4M3 (the finite one, "e4m3fn"): 4 exponent bits, 4 significant bits, no infinity, NaN 0x7f and
/// 0xff. A storage type: arithmetic happens in float.
///
/// Construction rounds once to nearest, ties to even, from float and double alike; integers beyond 2^53 pass through
/// double first. The largest value is 448. Nothing saturates: what would round to more (beyond 464; the tie goes down)
/// is NaN of the same sign, and so is infinity; clamp first where saturation is wanted. Subnormals reach down to 2^-9.
/// Conversion to float is exact and implicit, so comparison and arithmetic are those of float.
/// Source: OCP 8-bit Floating Point Specification 1.0, non-saturating conversion.
struct f8e4m3 {
  std::uint8_t bits;

  f8e4m3() = default;
  template <class A>
    requires std::is_arithmetic_v<A>
  explicit constexpr f8e4m3(A value) : bits(0) {
    if constexpr (std::is_same_v<A, float>) {
      bits = detail::f8e4m3_bits(value);
    } else {
      bits = detail::f8e4m3_bits(detail::round_to_odd(static_cast<double>(value)));
    }
  }
  constexpr operator float() const { return detail::f8e4m3_value(bits); }

  /// The value with the given representation.
  static constexpr f8e4m3 from_bits(std::uint8_t bits) {
    f8e4m3 value(0.0F);
    value.bits = bits;
    return value;
  }
};

/// OCP 8-bit float E5M2: 5 exponent bits, 3 significant bits, infinities and NaN as in IEEE formats; the upper byte of
/// a binary16. A storage type: arithmetic happens in float.
///
/// Rounding and conversion as for `f8e4m3`; the largest finite value is 57344, from 61440 on it is infinity, NaN stays
/// NaN (quieted, payload truncated), and subnormals reach down to 2^-16.
/// Source: OCP 8-bit Floating Point Specification 1.0, non-saturating conversion.
struct f8e5m2 {
  std::uint8_t bits;

  f8e5m2() = default;
  template <class A>
    requires std::is_arithmetic_v<A>
  explicit constexpr f8e5m2(A value) : bits(0) {
    if constexpr (std::is_same_v<A, float>) {
      bits = detail::f8e5m2_bits(value);
    } else {
      bits = detail::f8e5m2_bits(detail::round_to_odd(static_cast<double>(value)));
    }
  }
  constexpr operator float() const { return detail::f8e5m2_value(bits); }

  /// The value with the given representation.
  static constexpr f8e5m2 from_bits(std::uint8_t bits) {
    f8e5m2 value(0.0F);
    value.bits = bits;
    return value;
  }
};

}  // namespace meshwise
