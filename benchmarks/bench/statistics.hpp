// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace harness {

/// The value below which `percent` of a hundred of some sorted values lie, between two of them in proportion; 0 of
/// none.
inline double percentile_of_sorted(const std::vector<double>& values, double percent) {
  if (values.empty()) return 0;
  const double at = std::clamp(percent, 0.0, 100.0) / 100 * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

inline double percentile(std::vector<double> values, double percent) {
  std::sort(values.begin(), values.end());
  return percentile_of_sorted(values, percent);
}

/// The middle; of an even number the mean of the two.
inline double median(std::vector<double> values) { return percentile(std::move(values), 50); }

struct Interval {
  double low = 0;
  double high = 0;
  double confidence = 0;  ///< the probability that the interval holds what it is about
};

/// An interval that holds the median of the population with at least 95 %, from order statistics: whatever the
/// distribution, the number of samples below the median is binomial with probability 1/2. Fewer than six samples cannot
/// say that much: then it reaches from the least to the greatest, and `confidence` tells how little that is worth.
inline Interval median_interval(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  const auto count = static_cast<double>(n);
  // Of the tail: P(at most k - 1 of n samples lie below the median), by logarithms for the sake of a large n.
  const auto probability = [&](std::size_t k) {
    const auto below = static_cast<double>(k);
    return std::exp(std::lgamma(count + 1) - std::lgamma(below + 1) - std::lgamma(count - below + 1) -
                    count * std::log(2.0));
  };
  double tail = probability(0);
  std::size_t cut = 0;  // so many are left away at each end
  while (2 * (cut + 1) < n) {
    const double longer = tail + probability(cut + 1);
    if (longer > 0.025) break;
    tail = longer;
    ++cut;
  }
  return {values[cut], values[n - 1 - cut], std::max(0.0, 1 - 2 * tail)};
}

}  // namespace harness
