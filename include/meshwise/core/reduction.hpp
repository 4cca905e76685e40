// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "meshwise/core/element.hpp"

namespace meshwise {

/// The reductions at run time; `none` where an operation combines nothing. The values are stable.
enum class ReductionKind : std::uint8_t { none, sum, product, min, max };

namespace detail {

/// The unsigned type in which values of T wrap without promotion to a signed type.
template <class T>
using wrapping_t = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

template <class T>
using float_bits_t = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

template <class T>
inline constexpr float_bits_t<T> sign_bit = float_bits_t<T>{1} << (8 * sizeof(T) - 1);

/// What min (and max, with `flip` = the sign bit) of two floats is when neither is less than the other. Equal values
/// differ at most in the sign of zero, and joining the bits of a NaN with any others gives a NaN.
template <class T>
constexpr T join_unordered(T a, T b, float_bits_t<T> flip) {
  const auto joined = (std::bit_cast<float_bits_t<T>>(a) ^ flip) | (std::bit_cast<float_bits_t<T>>(b) ^ flip);
  return std::bit_cast<T>(static_cast<float_bits_t<T>>(joined ^ flip));
}

}  // namespace detail

/// a + b. Integers wrap modulo 2^bits; floats round to nearest, and `linear` means that a sum of values in this
/// reduction commutes with linear maps, which is what makes `Partial<axis, Sum>` more useful than the others.
struct Sum {
  static constexpr const char* name = "sum";
  static constexpr ReductionKind kind = ReductionKind::sum;
  static constexpr bool commutative = true;
  static constexpr bool linear = true;

  /// The neutral value, +0. (For floats the strictly neutral one would be -0: -0 + +0 is +0.)
  template <Element T>
  static constexpr accumulate_t<T> identity() {
    return accumulate_t<T>{0};
  }
  template <class A>
  static constexpr A apply(A a, A b) {
    if constexpr (std::is_integral_v<A>) {
      using W = detail::wrapping_t<A>;
      return static_cast<A>(static_cast<W>(a) + static_cast<W>(b));
    } else {
      return a + b;
    }
  }
};

/// a * b. Integers wrap modulo 2^bits.
struct Product {
  static constexpr const char* name = "product";
  static constexpr ReductionKind kind = ReductionKind::product;
  static constexpr bool commutative = true;
  static constexpr bool linear = false;

  template <Element T>
  static constexpr accumulate_t<T> identity() {
    return accumulate_t<T>{1};
  }
  template <class A>
  static constexpr A apply(A a, A b) {
    if constexpr (std::is_integral_v<A>) {
      using W = detail::wrapping_t<A>;
      return static_cast<A>(static_cast<W>(a) * static_cast<W>(b));
    } else {
      return a * b;
    }
  }
};

/// The smaller of a and b. NaN if either is NaN, -0 is smaller than +0, and the arguments may be exchanged without
/// changing a bit. Which NaN it is remains unspecified.
struct Min {
  static constexpr const char* name = "min";
  static constexpr ReductionKind kind = ReductionKind::min;
  static constexpr bool commutative = true;
  static constexpr bool linear = false;

  template <Element T>
  static constexpr accumulate_t<T> identity() {
    using Limits = std::numeric_limits<accumulate_t<T>>;
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }
  template <class A>
  static constexpr A apply(A a, A b) {
    if constexpr (std::is_integral_v<A>) {
      return b < a ? b : a;
    } else {
      return a < b ? a : b < a ? b : detail::join_unordered(a, b, detail::float_bits_t<A>{0});
    }
  }
};

/// The larger of a and b. NaN if either is NaN, +0 is larger than -0, and the arguments may be exchanged without
/// changing a bit. Which NaN it is remains unspecified.
struct Max {
  static constexpr const char* name = "max";
  static constexpr ReductionKind kind = ReductionKind::max;
  static constexpr bool commutative = true;
  static constexpr bool linear = false;

  template <Element T>
  static constexpr accumulate_t<T> identity() {
    using Limits = std::numeric_limits<accumulate_t<T>>;
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  }
  template <class A>
  static constexpr A apply(A a, A b) {
    if constexpr (std::is_integral_v<A>) {
      return a < b ? b : a;
    } else {
      return b < a ? a : a < b ? b : detail::join_unordered(a, b, detail::sign_bit<A>);
    }
  }
};

/// A binary operation that collectives can combine elements with. `apply` works on accumulate types; no atomics, no
/// state. The set is closed, because the kernels know each member.
template <class Op>
concept Reduction =
    std::is_same_v<Op, Sum> || std::is_same_v<Op, Product> || std::is_same_v<Op, Min> || std::is_same_v<Op, Max>;

/// The run-time kind of a reduction tag.
template <Reduction Op>
inline constexpr ReductionKind reduction_kind = Op::kind;

/// The name of a kind, such as "sum"; "unknown" for a value that is none.
constexpr const char* reduction_name(ReductionKind kind) {
  switch (kind) {
    case ReductionKind::none: return "none";
    case ReductionKind::sum: return Sum::name;
    case ReductionKind::product: return Product::name;
    case ReductionKind::min: return Min::name;
    case ReductionKind::max: return Max::name;
  }
  return "unknown";
}

}  // namespace meshwise
