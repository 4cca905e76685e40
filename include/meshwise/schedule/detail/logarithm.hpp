// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>

namespace meshwise::detail {

/// The least k with 2^k >= n, for n >= 1.
constexpr int ceil_lg(int n) { return static_cast<int>(std::bit_width(static_cast<unsigned>(n - 1))); }

/// The largest k with 2^k <= n, for n >= 1.
constexpr int floor_lg(int n) { return static_cast<int>(std::bit_width(static_cast<unsigned>(n))) - 1; }

constexpr bool power_of_two(int n) { return std::has_single_bit(static_cast<unsigned>(n)); }

}  // namespace meshwise::detail
