// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "meshwise/core/element.hpp"
#include "meshwise/core/reduction_kind.hpp"

namespace meshwise {

/// a & b, bit by bit. Integers only.
struct BitAnd {
  static constexpr const char* name = reduction_name(ReductionKind::bit_and);
  static constexpr ReductionKind kind = ReductionKind::bit_and;
  static constexpr bool commutative = true;
  static constexpr bool linear = false;

  /// All bits set.
  template <Element T>
    requires std::is_integral_v<T>
  static constexpr T identity() { return static_cast<T>(~T{0}); }
  template <class A>
    requires std::is_integral_v<A>
  static constexpr A apply(A a, A b) { return static_cast<A>(a & b); }
};

/// a | b, bit by bit. Integers only.
struct BitOr {
  static constexpr const char* name = reduction_name(ReductionKind::bit_or);
  static constexpr ReductionKind kind = ReductionKind::bit_or;
  static constexpr bool commutative = true;
  static constexpr bool linear = false;

  template <Element T>
    requires std::is_integral_v<T>
  static constexpr T identity() { return T{0}; }
  template <class A>
    requires std::is_integral_v<A>
  static constexpr A apply(A a, A b) { return static_cast<A>(a | b); }
};

/// a ^ b, bit by bit. Integers only.
struct BitXor {
  static constexpr const char* name = reduction_name(ReductionKind::bit_xor);
  static constexpr ReductionKind kind = ReductionKind::bit_xor;
  static constexpr bool commutative = true;
  static constexpr bool linear = false;

  template <Element T>
    requires std::is_integral_v<T>
  static constexpr T identity() { return T{0}; }
  template <class A>
    requires std::is_integral_v<A>
  static constexpr A apply(A a, A b) { return static_cast<A>(a ^ b); }
};

/// 1 if both are not 0, else 0. Integers only, as in MPI: of a float, say which comparison is meant.
///
/// The result is 0 or 1 for any number of contributions, one included; `identity` is neutral up to that.
struct LogicalAnd {
  static constexpr const char* name = reduction_name(ReductionKind::logical_and);
  static constexpr ReductionKind kind = ReductionKind::logical_and;
  static constexpr bool commutative = true;
  static constexpr bool linear = false;

  template <Element T>
    requires std::is_integral_v<T>
  static constexpr T identity() { return T{1}; }
  template <class A>
    requires std::is_integral_v<A>
  static constexpr A apply(A a, A b) { return static_cast<A>(a != 0 && b != 0); }
};

/// 1 if either is not 0, else 0. Integers only; see LogicalAnd.
struct LogicalOr {
  static constexpr const char* name = reduction_name(ReductionKind::logical_or);
  static constexpr ReductionKind kind = ReductionKind::logical_or;
  static constexpr bool commutative = true;
  static constexpr bool linear = false;

  template <Element T>
    requires std::is_integral_v<T>
  static constexpr T identity() { return T{0}; }
  template <class A>
    requires std::is_integral_v<A>
  static constexpr A apply(A a, A b) { return static_cast<A>(a != 0 || b != 0); }
};

/// 1 if exactly one is not 0, else 0: of several, whether an odd number is not 0. Integers only; see LogicalAnd.
struct LogicalXor {
  static constexpr const char* name = reduction_name(ReductionKind::logical_xor);
  static constexpr ReductionKind kind = ReductionKind::logical_xor;
  static constexpr bool commutative = true;
  static constexpr bool linear = false;

  template <Element T>
    requires std::is_integral_v<T>
  static constexpr T identity() { return T{0}; }
  template <class A>
    requires std::is_integral_v<A>
  static constexpr A apply(A a, A b) { return static_cast<A>((a != 0) != (b != 0)); }
};

namespace detail {

template <class Op>
inline constexpr bool is_bitwise =
    std::is_same_v<Op, BitAnd> || std::is_same_v<Op, BitOr> || std::is_same_v<Op, BitXor>;
template <class Op>
inline constexpr bool is_logical =
    std::is_same_v<Op, LogicalAnd> || std::is_same_v<Op, LogicalOr> || std::is_same_v<Op, LogicalXor>;

}  // namespace detail

}  // namespace meshwise
