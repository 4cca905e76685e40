// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "factors.hpp"

/// The data of a case, and what must become of it, by plain loops in rank order over one element at a time.
namespace conformance {

/// Values repeat with a prime period, so that tables hold all of them and a shifted block still shows.
inline constexpr std::size_t period = 509;

/// One period of elements.
using Table = std::vector<std::byte>;

/// What a rank contributes: element i is entry i modulo `period`.
///
/// Sums and products of exact values over nine ranks are exact in every format that a case uses, in any order; rough
/// ones are not. Minima and maxima meet NaN, infinities and both zeros; integers use their whole range.
Table contributions(const Case& c, int rank);

/// What becomes of a contribution that is only copied: itself, but for the rounding of the wire.
Table carried(const Case& c, int rank);

/// What combining the contributions of ranks 0 to `contributors` - 1 gives, in rank order; of none, the neutral value.
Table combined(const Case& c, int contributors);

/// How far a result may be from `combined` if the order of summation is free: one number per entry; exact cases: 0.
std::vector<double> tolerances(const Case& c, int contributors);

/// The factor of a rank for PreMultipliedSum.
double factor_of(const Case& c, int rank);

/// Whether an element is what it should be: the same bits, any NaN for a NaN, or near enough.
bool agrees(const Case& c, const std::byte* found, const std::byte* wanted, double tolerance);

/// An element in words, for messages.
std::string shown(const Case& c, const std::byte* item);

}  // namespace conformance
