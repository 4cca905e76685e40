// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "meshwise/core/detail/list.hpp"

namespace meshwise {

/// Who holds which blocks before a redistribution, and who wants which afterwards: the contract of an exchange.
///
/// held[r][s] is the block in input slot s of rank r, wanted[r][s] the block that output slot s of rank r must get.
/// A block may be held by several ranks, which then hold the same bits, and wanted by any number.
/// Cost: the index makes looking up a block independent of the number of ranks. Built once, a plain value.
struct Routes {
  struct Place {
    int rank = 0;
    int slot = 0;
    friend constexpr bool operator==(const Place&, const Place&) = default;
  };

  int blocks = 0;
  std::vector<std::vector<int>> held;
  std::vector<std::vector<int>> wanted;
  detail::List<detail::List<Place>> holders;  ///< by block, ascending
  detail::List<detail::List<Place>> takers;   ///< by block, ascending

  constexpr Routes() = default;
  constexpr Routes(int number, std::vector<std::vector<int>> before, std::vector<std::vector<int>> after)
      : blocks(number), held(std::move(before)), wanted(std::move(after)) {
    holders = index(held);
    takers = index(wanted);
  }

  constexpr int ranks() const { return static_cast<int>(held.size()); }

  /// Whether both sides have the same ranks, all blocks exist, and whatever is wanted is held somewhere.
  constexpr bool valid() const {
    if (held.size() != wanted.size() || blocks < 0) return false;
    for (const auto* side : {&held, &wanted}) {
      for (const auto& slots : *side) {
        for (const int block : slots) {
          if (block < 0 || block >= blocks) return false;
        }
      }
    }
    for (std::size_t block = 0; block < takers.size(); ++block) {
      if (!takers[block].empty() && holders[block].empty()) return false;
    }
    return true;
  }

  friend constexpr bool operator==(const Routes& a, const Routes& b) {
    return a.blocks == b.blocks && a.held == b.held && a.wanted == b.wanted;
  }

 private:
  constexpr detail::List<detail::List<Place>> index(const std::vector<std::vector<int>>& side) const {
    detail::List<detail::List<Place>> result(static_cast<std::size_t>(blocks < 0 ? 0 : blocks));
    for (std::size_t rank = 0; rank < side.size(); ++rank) {
      for (std::size_t slot = 0; slot < side[rank].size(); ++slot) {
        const int block = side[rank][slot];
        if (block < 0 || block >= blocks) continue;
        result[static_cast<std::size_t>(block)].push_back(Place{static_cast<int>(rank), static_cast<int>(slot)});
      }
    }
    return result;
  }
};

}  // namespace meshwise
