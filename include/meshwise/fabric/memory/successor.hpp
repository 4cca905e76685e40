// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace meshwise::detail {

struct GroupState;

/// The group that follows one that has failed, and who belongs to it: in memory that all ranks address, written before
/// it is published and never again.
class Successor {
 public:
  /// members: ranks of the old group, in order. So many numbers lie behind this.
  explicit Successor(const std::vector<int>& members) : count_(static_cast<std::int32_t>(members.size())) {
    auto* const to = reinterpret_cast<std::int32_t*>(this + 1);
    for (std::size_t k = 0; k < members.size(); ++k) new (to + k) std::int32_t(members[k]);
  }

  GroupState* state = nullptr;

  /// The ranks of the old group, of so many ranks, that belong to it; none if these are no ranks.
  std::vector<int> members(int old_size) const {
    std::vector<int> result;
    if (count_ < 0 || count_ > old_size) return result;
    const auto* const from = std::launder(reinterpret_cast<const std::int32_t*>(this + 1));
    for (std::int32_t k = 0; k < count_; ++k) {
      const std::int32_t rank = from[k];
      if (rank < 0 || rank >= old_size || (k > 0 && rank <= result.back())) return {};
      result.push_back(rank);
    }
    return result;
  }

 private:
  std::int32_t count_;
};

}  // namespace meshwise::detail
