// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "meshwise/core/detail/round_to_odd.hpp"
#include "meshwise/core/fp8.hpp"

namespace meshwise {

namespace detail {

constexpr std::uint16_t bf16_bits(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t nearest = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  const std::uint32_t quiet = (bits >> 16) | 0x0040U;
  return static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? quiet : nearest);
}

constexpr float bf16_value(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

constexpr std::uint16_t fp16_bits(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000U) {
    half = 0x7e00U | ((magnitude >> 13) & 0x03ffU);
  } else if (magnitude >= 0x47800000U) {  // 65536 and above
    half = 0x7c00U;
  } else if (magnitude >= 0x38800000U) {  // 2^-14: normal in both formats
    half = (magnitude - 0x38000000U + 0x0fffU + ((magnitude >> 13) & 1U)) >> 13;
  } else {  // the last place of 0.5f is the quantum of the subnormals
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000U;
  }
  return static_cast<std::uint16_t>(sign | half);
}

constexpr float fp16_value(std::uint16_t bits) {
  const std::uint32_t sign = (std::uint32_t{bits} & 0x8000U) << 16;
  const std::uint32_t exponent = (std::uint32_t{bits} >> 10) & 0x1fU;
  const std::uint32_t fraction = std::uint32_t{bits} & 0x03ffU;
  std::uint32_t result = 0;
  if (exponent == 0) {
    result = std::bit_cast<std::uint32_t>(static_cast<float>(fraction) * 0x1p-24F);
  } else if (exponent == 31) {
    result = 0x7f800000U | (fraction << 13) | (fraction != 0 ? 0x00400000U : 0U);
  } else {
    result = ((exponent + 112U) << 23) | (fraction << 13);
  }
  return std::bit_cast<float>(sign | result);
}

}  // namespace detail

/// The upper half of an IEEE binary32: 8 exponent bits, 8 significant bits. A storage type: arithmetic happens in
/// float.
///
/// Construction rounds once to nearest, ties to even, from float and double alike; integers beyond 2^53 pass through
/// double first. Overflow gives infinity, subnormals are kept, NaN stays NaN (quieted, payload truncated). Conversion
/// to float is exact and implicit, so comparison and arithmetic are those of float (-0 equals +0, NaN equals nothing).
struct bf16 {
  std::uint16_t bits;

  bf16() = default;
  template <class A>
    requires std::is_arithmetic_v<A>
  explicit constexpr bf16(A value) : bits(0) {
    if constexpr (std::is_same_v<A, float>) {
      bits = detail::bf16_bits(value);
    } else {
      bits = detail::bf16_bits(detail::round_to_odd(static_cast<double>(value)));
    }
  }
  constexpr operator float() const { return detail::bf16_value(bits); }

  /// The value with the given representation.
  static constexpr bf16 from_bits(std::uint16_t bits) {
    bf16 value(0.0F);
    value.bits = bits;
    return value;
  }
};

/// IEEE binary16: 5 exponent bits, 11 significant bits. A storage type: arithmetic happens in float.
///
/// Rounding, NaN, comparison and conversion as for `bf16`; the largest finite value is 65504, from 65520 on it is
/// infinity, and subnormals reach down to 2^-24.
struct fp16 {
  std::uint16_t bits;

  fp16() = default;
  template <class A>
    requires std::is_arithmetic_v<A>
  explicit constexpr fp16(A value) : bits(0) {
    if constexpr (std::is_same_v<A, float>) {
      bits = detail::fp16_bits(value);
    } else {
      bits = detail::fp16_bits(detail::round_to_odd(static_cast<double>(value)));
    }
  }
  constexpr operator float() const { return detail::fp16_value(bits); }

  /// The value with the given representation.
  static constexpr fp16 from_bits(std::uint16_t bits) {
    fp16 value(0.0F);
    value.bits = bits;
    return value;
  }
};

/// The element types at run time. The values are stable: they travel between ranks and into files.
enum class ElementKind : std::uint8_t { f32, f64, bf16, f16, i8, u8, i32, u32, i64, u64, f8e4m3, f8e5m2 };

namespace detail {

template <class T>
struct ElementTraits {
  static constexpr bool known = false;
};
template <ElementKind kind_value, class Accumulate>
struct KnownElement {
  static constexpr bool known = true;
  static constexpr ElementKind kind = kind_value;
  using accumulate = Accumulate;
};
template <>
struct ElementTraits<float> : KnownElement<ElementKind::f32, float> {};
template <>
struct ElementTraits<double> : KnownElement<ElementKind::f64, double> {};
template <>
struct ElementTraits<bf16> : KnownElement<ElementKind::bf16, float> {};
template <>
struct ElementTraits<fp16> : KnownElement<ElementKind::f16, float> {};
template <>
struct ElementTraits<std::int8_t> : KnownElement<ElementKind::i8, std::int8_t> {};
template <>
struct ElementTraits<std::uint8_t> : KnownElement<ElementKind::u8, std::uint8_t> {};
template <>
struct ElementTraits<std::int32_t> : KnownElement<ElementKind::i32, std::int32_t> {};
template <>
struct ElementTraits<std::uint32_t> : KnownElement<ElementKind::u32, std::uint32_t> {};
template <>
struct ElementTraits<std::int64_t> : KnownElement<ElementKind::i64, std::int64_t> {};
template <>
struct ElementTraits<std::uint64_t> : KnownElement<ElementKind::u64, std::uint64_t> {};
template <>
struct ElementTraits<f8e4m3> : KnownElement<ElementKind::f8e4m3, float> {};
template <>
struct ElementTraits<f8e5m2> : KnownElement<ElementKind::f8e5m2, float> {};

}  // namespace detail

/// A type that tensors and collectives can hold.
template <class T>
concept Element = detail::ElementTraits<T>::known;

/// An element type that holds fractions.
template <class T>
concept FloatElement = Element<T> && !std::is_integral_v<T>;

/// The run-time kind of an element type.
template <Element T>
inline constexpr ElementKind element_kind = detail::ElementTraits<T>::kind;

/// The type in which values of T are combined: float for the 8- and 16-bit floats, T itself otherwise.
template <Element T>
using accumulate_t = typename detail::ElementTraits<T>::accumulate;

/// The short name of a kind, such as "bf16"; "unknown" for a value that is none.
constexpr const char* element_name(ElementKind kind) {
  switch (kind) {
    case ElementKind::f32: return "f32";
    case ElementKind::f64: return "f64";
    case ElementKind::bf16: return "bf16";
    case ElementKind::f16: return "f16";
    case ElementKind::i8: return "i8";
    case ElementKind::u8: return "u8";
    case ElementKind::i32: return "i32";
    case ElementKind::u32: return "u32";
    case ElementKind::i64: return "i64";
    case ElementKind::u64: return "u64";
    case ElementKind::f8e4m3: return "f8e4m3";
    case ElementKind::f8e5m2: return "f8e5m2";
  }
  return "unknown";
}

/// The size of one element in bytes; 0 for a value that is no kind.
constexpr std::size_t element_size(ElementKind kind) {
  switch (kind) {
    case ElementKind::i8:
    case ElementKind::u8:
    case ElementKind::f8e4m3:
    case ElementKind::f8e5m2: return 1;
    case ElementKind::bf16:
    case ElementKind::f16: return 2;
    case ElementKind::f32:
    case ElementKind::i32:
    case ElementKind::u32: return 4;
    case ElementKind::f64:
    case ElementKind::i64:
    case ElementKind::u64: return 8;
  }
  return 0;
}

}  // namespace meshwise
