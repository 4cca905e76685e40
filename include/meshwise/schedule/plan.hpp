// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "meshwise/schedule/schedule.hpp"

namespace meshwise {

/// "The progress of `rank` in this operation is at least `step`."
///
/// Progress 1 means that the rank has entered: its buffers are published and may be touched. After its i-th step
/// (from 0) its progress is i + 2.
struct Wait {
  int rank = 0;
  int step = 1;

  friend constexpr bool operator==(const Wait&, const Wait&) = default;
};

/// One move of this rank on one lane, and what must have happened before it.
struct Step {
  Move move;
  int lane = 0;             ///< which slice of every slot: lane l of n takes part l of n of each block
  std::vector<Wait> waits;  ///< at most one per rank, other ranks only
};

/// What one rank does in a collective: its moves in order, each after its waits, then the waits that must hold before
/// the call may return (nobody will touch this rank's buffers any more, and its result is complete).
struct Plan {
  Shape shape;
  int rank = 0;
  int lanes = 1;
  int scratch_slots = 0;
  std::vector<Step> steps;
  std::vector<Wait> exit;
};

}  // namespace meshwise
