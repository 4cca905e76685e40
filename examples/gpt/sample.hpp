// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "meshwise/core/error.hpp"
#include "meshwise/core/random.hpp"

namespace gpt {

/// Draws the next byte from the soft-max of logits / temperature.
///
/// `logits`: one per token of the vocabulary, of which only the first 256 can be bytes; `temperature`: 0
/// takes the likeliest, the lower byte of equals; `top_k`: draws among so many of the likeliest, 0 or more
/// than there are for all. A function of its arguments: `index` numbers the draws of one seed. Cost: O(256
/// log 256), one small allocation. Errors: no logits, a logit that is NaN or +infinity, none above -infinity,
/// a temperature that is negative or not finite.
template <class T>
int next_byte(std::span<const T> logits, double temperature, std::int64_t top_k, std::uint64_t seed,
              std::uint64_t index) {
  if (logits.empty()) meshwise::fail("next_byte", "one logit or more", "none", "pass a whole row of logits");
  if (!std::isfinite(temperature) || temperature < 0) {
    meshwise::fail("next_byte", "a finite temperature of at least 0", std::to_string(temperature),
                   "give 0 for the likeliest byte");
  }
  std::vector<std::pair<double, int>> likeliest;
  for (std::size_t i = 0; i < std::min<std::size_t>(logits.size(), 256); ++i) {
    const double logit = static_cast<double>(logits[i]);
    if (std::isnan(logit) || logit == INFINITY) {
      meshwise::fail("next_byte", "finite logits", std::to_string(logit) + " for byte " + std::to_string(i),
                     "the training has diverged: lower the learning rate");
    }
    likeliest.emplace_back(logit, static_cast<int>(i));
  }
  std::sort(likeliest.begin(), likeliest.end(),
            [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
  const double largest = likeliest[0].first;
  if (largest == -INFINITY) {
    meshwise::fail("next_byte", "a logit above -infinity", "none", "leave a byte to be drawn");
  }
  if (temperature == 0) return likeliest[0].second;
  if (top_k > 0 && static_cast<std::uint64_t>(top_k) < likeliest.size()) {
    likeliest.resize(static_cast<std::size_t>(top_k));
  }
  double total = 0;
  for (auto& [weight, byte] : likeliest) total += weight = std::exp((weight - largest) / temperature);
  double rest = meshwise::uniform(seed, index) * total;
  for (const auto& [weight, byte] : likeliest) {
    if (rest < weight) return byte;
    rest -= weight;
  }
  return likeliest[0].second;  // only rounding leads here
}

/// Text that is safe on a terminal: line breaks and valid UTF-8 stay, every other control character, and
/// every byte that is no part of valid UTF-8, is written as \t, \r or \xNN. For display: a backslash itself
/// stays as it is.
inline std::string printable(std::string_view bytes) {
  const auto at = [&](std::size_t i) { return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0u; };
  // Bytes of the UTF-8 sequence that starts at i, or 0. Overlong forms, surrogates and what lies beyond
  // U+10FFFF are not valid; neither are the control characters U+0080 to U+009F wanted.
  const auto sequence = [&](std::size_t i) -> std::size_t {
    const unsigned first = at(i), second = at(i + 1);
    const auto follows = [&](std::size_t j) { return (at(j) & 0xC0) == 0x80; };
    if (first < 0xC2 || first > 0xF4 || !follows(i + 1)) return 0;
    if (first < 0xE0) return first == 0xC2 && second < 0xA0 ? 0 : 2;
    if (!follows(i + 2)) return 0;
    if (first < 0xF0) return (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ? 0 : 3;
    return !follows(i + 3) || (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F) ? 0 : 4;
  };
  const char* const digits = "0123456789ABCDEF";
  std::string text;
  for (std::size_t i = 0; i < bytes.size();) {
    const unsigned byte = at(i);
    const std::size_t length = byte == '\n' || (byte >= 0x20 && byte < 0x7F) ? 1 : sequence(i);
    if (length > 0) {
      text += bytes.substr(i, length);
      i += length;
      continue;
    }
    if (byte == '\t' || byte == '\r') {
      text += byte == '\t' ? "\\t" : "\\r";
    } else {
      text += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    }
    ++i;
  }
  return text;
}

}  // namespace gpt
