// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "meshwise/core/detail/list.hpp"
#include "meshwise/fabric/shared_memory/control.hpp"

namespace meshwise::detail {

/// Whether what is left of a job goes on without the ranks that have failed, as whoever has started it sees it: some of
/// them have called shrink since.
class Recovery {
 public:
  /// control: of the job; stays.
  Recovery(const Control& control, int ranks) : control_(control) {
    for (int rank = 0; rank < ranks; ++rank) before_.push_back(0);
  }

  /// A rank has failed. Where others have gone on without it already, nothing changes; else they are to call shrink
  /// from now on.
  void failed(int rank) {
    for (int other = 0; other < ranks(); ++other) {
      if (shrinks(other) > shrinks(rank)) return;
    }
    for (int other = 0; other < ranks(); ++other) before_[static_cast<std::size_t>(other)] = shrinks(other);
  }

  /// Whether this rank goes on.
  bool goes_on(int rank) const { return shrinks(rank) > before_[static_cast<std::size_t>(rank)]; }

 private:
  int ranks() const { return static_cast<int>(before_.size()); }
  std::uint32_t shrinks(int rank) const { return control_.record(rank).shrinks.load(std::memory_order_relaxed); }

  const Control& control_;
  List<std::uint32_t> before_;  ///< by rank
};

}  // namespace meshwise::detail
