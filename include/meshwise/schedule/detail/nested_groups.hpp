// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/core/detail/sorted.hpp"
#include "meshwise/core/error.hpp"

namespace meshwise::detail {

/// Groups of ranks in groups, and how many rounds each level of them takes.
class NestedGroups {
 public:
  constexpr NestedGroups() = default;

  /// As Hierarchical is given them. Errors: `invalid_argument`.
  constexpr NestedGroups(std::vector<std::vector<int>> begins, int widest_direct)
      : begins_(std::move(begins)), widest_direct_(widest_direct) {
    for (std::size_t level = 0; level < begins_.size(); ++level) {
      const std::vector<int>& own = begins_[level];
      if (own.empty() || own[0] != 0 || !ascending(own)) {
        refuse("groups that begin at rank 0 and then at higher and higher ranks", level);
      }
      int widest = 0;
      if (level > 0) {
        const std::vector<int>& below = begins_[level - 1];
        if (!all_among(own, below)) {
          refuse("groups that are unions of groups of the level below", level);
        }
        for (std::size_t i = 0, from = 0; i < own.size(); ++i) {
          std::size_t to = from;
          while (to < below.size() && (i + 1 == own.size() || below[to] < own[i + 1])) ++to;
          widest = larger(widest, static_cast<int>(to - from));
          from = to;
        }
      } else {
        for (std::size_t i = 0; i + 1 < own.size(); ++i) widest = larger(widest, own[i + 1] - own[i]);
      }
      widest_.push_back(widest);
    }
  }

  constexpr const std::vector<std::vector<int>>& begins() const { return begins_; }
  /// How many children a group may have for its level to take one round only.
  constexpr int widest_direct() const { return widest_direct_; }
  /// The level of the group of all ranks.
  constexpr int top() const { return static_cast<int>(begins_.size()); }

  /// The rounds of a circulant reduce-scatter among n children.
  static constexpr int log_rounds(int n) { return static_cast<int>(std::bit_width(static_cast<unsigned>(n - 1))); }

  /// How many rounds a level takes among so many ranks: as many as its largest group.
  constexpr int rounds_of(int ranks, int level) const {
    const int n = widest(ranks, level);
    return n == 1 ? 0 : n <= widest_direct_ ? 1 : log_rounds(n);
  }

  friend constexpr bool operator==(const NestedGroups& a, const NestedGroups& b) {
    return a.begins_ == b.begins_ && a.widest_direct_ == b.widest_direct_;
  }

 private:
  [[noreturn]] static void refuse(const char* expected, std::size_t level) {
    fail("Hierarchical", expected, "level " + std::to_string(level) + " is not so",
         "give each level as the first ranks of its groups, innermost level first, without the group of all ranks");
  }

  /// The children of the largest group of a level.
  constexpr int widest(int ranks, int level) const {
    const auto at = static_cast<std::size_t>(level);
    if (level == top()) return level == 0 ? ranks : static_cast<int>(begins_[at - 1].size());
    return level == 0 ? larger(widest_[0], ranks - begins_[0].back()) : widest_[at];
  }

  std::vector<std::vector<int>> begins_;
  std::vector<int> widest_;  ///< by level, as far as it does not depend on the number of ranks
  int widest_direct_ = 16;
};

}  // namespace meshwise::detail
