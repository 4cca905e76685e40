// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "meshwise/core/element.hpp"
#include "meshwise/core/logic.hpp"
#include "meshwise/core/reduction_kind.hpp"

namespace meshwise {

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

/// The largest value of T, infinity included, in its accumulate type.
template <Element T>
constexpr accumulate_t<T> largest() {
  using Limits = std::numeric_limits<accumulate_t<T>>;
  if constexpr (std::is_same_v<T, f8e4m3>) return accumulate_t<T>{448};
  return Limits::has_infinity ? Limits::infinity() : Limits::max();
}

/// The smallest value of T, infinity included, in its accumulate type.
template <Element T>
constexpr accumulate_t<T> smallest() {
  if constexpr (std::is_integral_v<T>) return std::numeric_limits<T>::lowest();
  return static_cast<accumulate_t<T>>(-largest<T>());
}

}  // namespace detail

/// a + b. Integers wrap modulo 2^bits; floats round to nearest, and `linear` means that a sum of values in this
/// reduction commutes with linear maps, which is what makes `Partial<axis, Sum>` more useful than the others.
struct Sum {
  static constexpr const char* name = reduction_name(ReductionKind::sum);
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
  static constexpr const char* name = reduction_name(ReductionKind::product);
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
/// changing a bit: a NaN has the bits of both arguments.
struct Min {
  static constexpr const char* name = reduction_name(ReductionKind::min);
  static constexpr ReductionKind kind = ReductionKind::min;
  static constexpr bool commutative = true;
  static constexpr bool linear = false;

  template <Element T>
  static constexpr accumulate_t<T> identity() {
    return detail::largest<T>();
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
/// changing a bit: a NaN has the bits of both arguments.
struct Max {
  static constexpr const char* name = reduction_name(ReductionKind::max);
  static constexpr ReductionKind kind = ReductionKind::max;
  static constexpr bool commutative = true;
  static constexpr bool linear = false;

  template <Element T>
  static constexpr accumulate_t<T> identity() {
    return detail::smallest<T>();
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

namespace detail {

template <class Op>
inline constexpr bool is_arithmetic_reduction =
    std::is_same_v<Op, Sum> || std::is_same_v<Op, Product> || std::is_same_v<Op, Min> || std::is_same_v<Op, Max>;
template <class Op>
inline constexpr bool is_built_in = is_arithmetic_reduction<Op> || is_bitwise<Op> || is_logical<Op>;

}  // namespace detail

/// A binary operation that collectives can combine elements with: an empty type that says
///   `name`          what errors call it; operations with equal names are taken for the same;
///   `kind`          `ReductionKind::user` for every operation that is not the library's own;
///   `commutative`   whether the arguments may be exchanged; if not, only algorithms that keep rank order are used;
///   `linear`        whether it commutes with linear maps, as Sum does: then a `Partial` of it may pass through them;
///   `identity<T>()` the neutral value for elements of T, as an `accumulate_t<T>` that T can hold;
///   `apply(a, b)`   of two values of the accumulate type A, an A.
/// `apply` must be associative up to rounding, and a function of its arguments: no state, the same on all ranks. Where
/// it is defined (`Reduces`) may depend on the element type.
template <class Op>
concept Reduction = std::is_empty_v<Op> && requires {
  { Op::name } -> std::convertible_to<const char*>;
  requires std::same_as<const ReductionKind, decltype(Op::kind)>;
  requires std::same_as<const bool, decltype(Op::commutative)>;
  requires std::same_as<const bool, decltype(Op::linear)>;
  requires detail::is_built_in<Op> || Op::kind == ReductionKind::user;
};

/// Whether Op is defined on elements of T.
template <class Op, class T>
concept Reduces = Reduction<Op> && Element<T> && requires(accumulate_t<T> a) {
  { Op::template identity<T>() } -> std::same_as<accumulate_t<T>>;
  { Op::apply(a, a) } -> std::same_as<accumulate_t<T>>;
};

/// The run-time kind of a reduction.
template <Reduction Op>
inline constexpr ReductionKind reduction_kind = Op::kind;

namespace detail {

constexpr std::uint64_t signature_of(const char* name, ReductionKind kind, bool commutative, bool linear) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  const auto take = [&](std::uint64_t byte) { hash = (hash ^ byte) * 0x100000001b3ULL; };
  for (; *name != 0; ++name) take(static_cast<unsigned char>(*name));
  take(static_cast<std::uint64_t>(kind));
  take(std::uint64_t{commutative} + 2 * std::uint64_t{linear});
  return hash;
}

}  // namespace detail

/// A number by which ranks can tell whether they combine with the same operation: a hash of its name and properties.
/// Source: FNV-1a, 64 bits.
template <Reduction Op>
inline constexpr std::uint64_t reduction_signature = detail::signature_of(Op::name, Op::kind, Op::commutative,
                                                                          Op::linear);

}  // namespace meshwise
