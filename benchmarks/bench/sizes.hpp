// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace harness {

/// A number of bytes: digits, and K, M, G or T for powers of 1024, in either case, with or without "B" or "iB" behind:
/// "8", "32k", "128M", "1GiB". False, and `bytes` stays as it is, for everything else and beyond 64 bits.
constexpr bool parse_bytes(std::string_view text, std::size_t& bytes) {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  std::size_t value = 0, digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
    const auto digit = static_cast<std::size_t>(text[digits] - '0');
    if (value > (most - digit) / 10) return false;
    value = value * 10 + digit;
    ++digits;
  }
  if (digits == 0) return false;
  std::string_view unit = text.substr(digits);
  int shift = 0;
  if (!unit.empty()) {
    switch (unit.front()) {
      case 'k':
      case 'K': shift = 10; break;
      case 'm':
      case 'M': shift = 20; break;
      case 'g':
      case 'G': shift = 30; break;
      case 't':
      case 'T': shift = 40; break;
      default: break;
    }
    if (shift != 0) unit.remove_prefix(1);
    if (shift != 0 && unit == "iB") unit = {};
    if (unit == "B" || unit == "b") unit = {};
  }
  if (!unit.empty() || value > most >> shift) return false;
  bytes = value << shift;
  return true;
}

/// For people and axes: "8", "32K", "1M"; a number that is no multiple of a unit in the smaller one.
inline std::string bytes_text(std::size_t bytes) {
  constexpr const char* units[] = {"", "K", "M", "G", "T"};
  int unit = 0;
  while (unit < 4 && bytes >= 1024 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return std::to_string(bytes) + units[unit];
}

/// The sizes of a sweep: from `least` to `most`, each `factor` times the one before, or `step` more if that is not 0.
inline std::vector<std::size_t> sweep(std::size_t least, std::size_t most, double factor, std::size_t step) {
  std::vector<std::size_t> sizes;
  for (std::size_t size = least; size <= most && sizes.size() < 100'000;) {
    sizes.push_back(size);
    const double next = step > 0 ? static_cast<double>(size) + static_cast<double>(step)
                                 : static_cast<double>(size > 0 ? size : 1) * factor;
    if (next > 1e18) break;
    const auto rounded = static_cast<std::size_t>(next);
    size = rounded > size ? rounded : size + 1;
  }
  return sizes;
}

}  // namespace harness
