// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace meshwise::detail {

/// Rounds a double to float so that a second rounding, to a format of at most 22 significant bits, is the only one
/// that counts: an inexact result is truncated and its last bit set (rounding to odd).
constexpr float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const double back = static_cast<double>(nearest);
  if (back == value || value != value) return nearest;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
  const bool away = value < 0 ? back < value : back > value;
  if (away) bits -= 1;  // one step towards zero; from infinity to the largest finite value
  return std::bit_cast<float>(bits | 1U);
}

}  // namespace meshwise::detail
