// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace meshwise::detail {

/// The sum of doubles that are not negative, without rounding, so that it depends on neither order nor grouping.
///
/// A number of 53 bits is added into two of 66 words of 64 bits, which stand for digits of 32 bits from 2^-1074 up; the
/// bits above these take up carries until `settle` passes them on. Four rows of words take turns, so that an addition
/// does not wait for the one before. Infinite values and NaN are counted.
/// Source: Neal, "Fast exact summation using small and large superaccumulators", arXiv 1505.05571.
class ExactSum {
 public:
  static constexpr std::size_t digits = 67, infinities = digits, nans = digits + 1, size = digits + 2;
  /// Digits below 2^32, then the counts: to be added up over up to 2^32 ranks as they are.
  using Words = std::array<std::uint64_t, size>;

  /// Adds term(i) for i < count.
  template <class F>
  void add(std::size_t count, const F& term) {
    std::size_t i = 0;
    while (i < count) {
      if (room_ < lanes) settle();
      const std::size_t rounds = count - i < room_ ? count - i : room_;
      room_ -= rounds;
      const std::size_t end = i + rounds;
      for (; i + lanes <= end; i += lanes) {
        for (std::size_t k = 0; k < lanes; ++k) add_to(rows_[k], term(i + k));
      }
      for (std::size_t k = 0; i < end; ++i, ++k) add_to(rows_[k], term(i));
    }
  }

  Words words() const {
    ExactSum settled = *this;
    settled.settle();
    return settled.rows_[0];
  }

  /// The double next to the sum of these words, or one of its two neighbours: a function of the sum alone.
  static double value(std::span<const std::uint64_t, size> summed) {
    if (summed[nans] != 0) return std::numeric_limits<double>::quiet_NaN();
    if (summed[infinities] != 0) return std::numeric_limits<double>::infinity();
    Words words;
    for (std::size_t d = 0; d < size; ++d) words[d] = summed[d];
    carry(words);
    std::size_t top = digits - 1;
    while (top > 0 && words[top] == 0) --top;
    double result = 0;
    for (std::size_t d = top < 2 ? 0 : top - 2; d <= top; ++d) {
      result += __builtin_ldexp(static_cast<double>(words[d]), 32 * static_cast<int>(d) - 1074);
    }
    return result;
  }

 private:
  static constexpr std::size_t lanes = 4;
  static constexpr std::size_t most = std::size_t{1} << 11;  // 52 bits each, on top of 32

  static void add_to(Words& words, double x) {
    const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
    const std::uint64_t exponent = bits >> 52 & 0x7ff, fraction = bits & ((std::uint64_t{1} << 52) - 1);
    if (exponent == 0x7ff) {
      ++words[fraction == 0 ? infinities : nans];
      return;
    }
    // Subnormal numbers have the exponent of the smallest normal ones, and no leading one.
    const std::uint64_t mantissa = exponent == 0 ? fraction : fraction | std::uint64_t{1} << 52;
    const std::uint64_t place = exponent == 0 ? 0 : exponent - 1;
    const std::uint64_t shift = place % 32;
    words[place / 32] += mantissa << shift & 0xffffffffU;
    words[place / 32 + 1] += mantissa >> (32 - shift);
  }

  void settle() {
    for (std::size_t k = 1; k < lanes; ++k) {
      carry(rows_[k]);
      for (std::size_t d = 0; d < size; ++d) rows_[0][d] += rows_[k][d];
      rows_[k] = {};
    }
    carry(rows_[0]);
    room_ = most;
  }
  static void carry(Words& words) {
    for (std::size_t d = 0; d + 1 < digits; ++d) {
      words[d + 1] += words[d] >> 32;
      words[d] &= 0xffffffffU;
    }
  }

  std::array<Words, lanes> rows_{};
  std::size_t room_ = most;  // additions until a word could overflow, were they all in one row
};

}  // namespace meshwise::detail
