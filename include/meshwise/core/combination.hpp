// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "meshwise/core/element.hpp"
#include "meshwise/core/reduction.hpp"

namespace meshwise {

/// The sum of all ranks' values divided by their number.
///
/// Floats: the sum, in the accumulate type as far as the algorithm combines without storing, is divided once, correctly
/// rounded, in the accumulate type, and the quotient is rounded once to the element type. Integers: the sum wraps
/// modulo 2^bits, then the quotient is truncated towards zero: an average is wrong where the sum overflows.
/// Not a Reduction: the average of averages is another value, so a partial result cannot be combined further.
struct Average {
  static constexpr const char* name = reduction_name(ReductionKind::average);
  static constexpr ReductionKind kind = ReductionKind::average;
  using reduction = Sum;  ///< what combines the contributions

  /// The division: of a sum of `ranks` values (at least 1) in the accumulate type A.
  template <class A>
  static constexpr A finish(A sum, int ranks) {
    if constexpr (!std::is_integral_v<A>) {
      return sum / static_cast<A>(ranks);
    } else if constexpr (std::is_signed_v<A>) {
      return static_cast<A>(std::int64_t{sum} / ranks);
    } else {
      return static_cast<A>(std::uint64_t{sum} / static_cast<std::uint64_t>(ranks));
    }
  }
};

/// The sum of all ranks' values, each multiplied by its rank's own factor.
///
/// A rank's products are formed in the accumulate type (to which the factor is converted first) and rounded to the
/// element type before they are combined, so that they depend on no algorithm. Integers: the factor must be a whole
/// number from -2^63 to below 2^64; it and the products wrap modulo 2^bits. Factors may differ between ranks.
struct PreMultipliedSum {
  static constexpr const char* name = reduction_name(ReductionKind::pre_multiplied_sum);
  static constexpr ReductionKind kind = ReductionKind::pre_multiplied_sum;
  using reduction = Sum;  ///< what combines the products

  double factor = 1;
};

namespace detail {

template <class C>
struct underlying_reduction {};
template <Reduction Op>
struct underlying_reduction<Op> {
  using is = Op;
};
template <>
struct underlying_reduction<Average> {
  using is = Sum;
};
template <>
struct underlying_reduction<PreMultipliedSum> {
  using is = Sum;
};

}  // namespace detail

/// What a collective can do with the contributions of all ranks: a Reduction, or one with a step before or after it
/// (Average, PreMultipliedSum).
template <class C>
concept Combination = requires {
  typename detail::underlying_reduction<C>::is;
};

/// The reduction that a combination's schedule performs: C itself, or Sum for Average and PreMultipliedSum.
template <Combination C>
using reduction_of = typename detail::underlying_reduction<C>::is;

/// Whether combination C is defined on elements of T.
template <class C, class T>
concept Combines = Combination<C> && Reduces<reduction_of<C>, T>;

/// The run-time kind of a combination.
template <Combination C>
inline constexpr ReductionKind combination_kind = C::kind;

}  // namespace meshwise
