// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "support.hpp"

namespace test {

/// Roots worth trying in a group.
inline std::vector<int> roots(int ranks) {
  std::vector<int> result{0};
  if (ranks > 1) result.push_back(ranks - 1);
  if (ranks > 2) result.push_back(ranks / 2);
  return result;
}

/// Counts of blocks that differ, some of them 0; the same on every rank.
inline std::vector<std::size_t> uneven(int ranks, std::size_t scale) {
  std::vector<std::size_t> result;
  for (int rank = 0; rank < ranks; ++rank) {
    result.push_back((static_cast<std::size_t>(rank) * 7 + 3) % 5 * scale / 2);
  }
  return result;
}

inline std::size_t sum_of(const std::vector<std::size_t>& counts, std::size_t first) {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < first; ++i) sum += counts[i];
  return sum;
}

/// Where `count` elements differ from what `wanted(i)` says.
template <class T, class F>
void require_items(const T* items, std::size_t count, const std::string& what, const F& wanted) {
  for (std::size_t i = 0; i < count; ++i) {
    if (items[i] == wanted(i)) continue;
    require(false, what + ", element " + std::to_string(i) + " of " + std::to_string(count));
  }
}

}  // namespace test
