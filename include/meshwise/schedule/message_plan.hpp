// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "meshwise/schedule/schedule.hpp"

namespace meshwise {

/// One message, as one of its two ends sees it. Messages from one rank to another match in their order.
struct Message {
  int peer = 0;   ///< the other rank
  int block = 0;  ///< the block that the first slot carries; it decides the length, the same at both ends
  Piece piece;    ///< where the data lies at this end: piece.rank is the rank that owns the plan

  friend constexpr bool operator==(const Message&, const Message&) = default;
};

/// Messages that are in flight together, then local work on what has arrived.
///
/// Post all sends and receives, in any order between pairs but in this order for each pair; when the receives are
/// complete perform the moves in order; when the sends are complete too, the step ends. Nothing in a step overlaps
/// anything that is still in flight, and no send needs a buffer of the transport to make progress.
struct MessageStep {
  int lane = 0;  ///< which slice of every slot the messages and moves of this step carry
  std::vector<Message> sends;
  std::vector<Message> receives;
  std::vector<Move> moves;  ///< all pieces lie on this rank
};

/// What one rank does in a collective on a fabric that has only messages.
struct MessagePlan {
  Shape shape;
  int rank = 0;
  int lanes = 1;
  int scratch_slots = 0;  ///< of this rank: those of the schedule, then those in which foreign sources arrive
  std::vector<MessageStep> steps;
};

}  // namespace meshwise
