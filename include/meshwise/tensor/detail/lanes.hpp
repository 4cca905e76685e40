// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace meshwise::detail {

/// The sum of f(i) for i in [0, n) in eight running sums, added up in a fixed order: the compiler may use vectors, and
/// the result depends on n and f alone.
template <class A, class F>
A lane_sum(std::size_t n, const F& f) {
  A lane[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (std::size_t k = 0; k < 8; ++k) lane[k] += f(i + k);
  }
  for (std::size_t k = 0; i + k < n; ++k) lane[k] += f(i + k);
  return ((lane[0] + lane[4]) + (lane[1] + lane[5])) + ((lane[2] + lane[6]) + (lane[3] + lane[7]));
}

/// The largest f(i), or `least` if n is 0; for values without NaN.
template <class A, class F>
A lane_max(std::size_t n, A least, const F& f) {
  A lane[8] = {least, least, least, least, least, least, least, least};
  std::size_t i = 0;
  const auto keep = [](A a, A b) { return a < b ? b : a; };
  for (; i + 8 <= n; i += 8) {
    for (std::size_t k = 0; k < 8; ++k) lane[k] = keep(lane[k], f(i + k));
  }
  for (std::size_t k = 0; i + k < n; ++k) lane[k] = keep(lane[k], f(i + k));
  for (std::size_t k = 1; k < 8; ++k) lane[0] = keep(lane[0], lane[k]);
  return lane[0];
}

}  // namespace meshwise::detail
