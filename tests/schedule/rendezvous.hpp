// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "dice.hpp"
#include "meshwise/schedule/message_plan.hpp"
#include "meshwise/schedule/verify.hpp"
#include "simulation.hpp"

namespace meshwise::test {

inline std::vector<int> scratch_of(const std::vector<MessagePlan>& plans) {
  std::vector<int> result;
  for (const MessagePlan& plan : plans) result.push_back(plan.scratch_slots);
  return result;
}

/// Ranks that exchange messages by rendezvous: data goes from buffer to buffer at some moment at which both ends are
/// posted, in any order between pairs of ranks, in posting order for each pair. Lanes are separate memories.
class Rendezvous {
 public:
  explicit Rendezvous(const std::vector<MessagePlan>& plans)
      : plans_(plans),
        memory_(at(plans[0].lanes), detail::Memory(plans[0].shape, scratch_of(plans))),
        ranks_(plans.size()),
        sends_(plans.size() * plans.size()),
        receives_(plans.size() * plans.size()) {}

  /// Runs until nothing can happen any more; false for a dead lock, a message whose ends differ, or undefined data.
  bool run(Dice& dice) {
    const int p = static_cast<int>(plans_.size());
    for (bool moved = true; moved;) {
      moved = false;
      const int first = dice.roll(p);
      for (int i = 0; i < p; ++i) {
        const int rank = (first + i) % p;
        if (dice.roll(3) == 0) {
          moved = true;  // it would have had its chance
          continue;
        }
        moved = advance(rank) || moved;
        for (const int peer : peers(rank)) {
          while (dice.roll(4) != 0 && transfer(peer, rank)) moved = true;
          if (ready(peer, rank)) moved = true;
        }
      }
      if (done()) return !failed_;
      if (++passes_ > 100000) return false;
    }
    return false;
  }

  /// Whether the contract is met on every lane.
  bool good() const {
    for (const detail::Memory& memory : memory_) {
      Verdict verdict;
      detail::check_outputs(plans_[0].shape, memory, verdict);
      if (!verdict.ok()) return false;
    }
    return !failed_;
  }

  const detail::Memory& memory(int lane = 0) const { return memory_[at(lane)]; }
  std::int64_t blocks_sent() const { return blocks_sent_; }

 private:
  struct Progress {
    std::size_t step = 0;
    bool posted = false;
    bool moved = false;  ///< the local moves of the step are done
    int receives = 0;    ///< in flight
    int sends = 0;
  };
  struct Posted {
    const Message* message;
    int lane;
  };
  struct Queue {
    std::vector<Posted> list;
    std::size_t head = 0;
  };

  std::size_t pair(int from, int to) const { return at(from) * plans_.size() + at(to); }

  bool done() const {
    for (std::size_t r = 0; r < plans_.size(); ++r) {
      if (ranks_[r].step < plans_[r].steps.size()) return false;
    }
    return true;
  }

  /// The ranks from which `rank` waits for messages in its step.
  std::set<int> peers(int rank) const {
    std::set<int> result;
    const Progress& own = ranks_[at(rank)];
    if (!own.posted) return result;
    for (const Message& message : plans_[at(rank)].steps[own.step].receives) result.insert(message.peer);
    return result;
  }

  bool ready(int from, int to) const {
    const Queue& sends = sends_[pair(from, to)];
    const Queue& receives = receives_[pair(from, to)];
    return sends.head < sends.list.size() && receives.head < receives.list.size();
  }

  bool transfer(int from, int to) {
    if (!ready(from, to)) return false;
    Queue& sends = sends_[pair(from, to)];
    Queue& receives = receives_[pair(from, to)];
    const Posted& sent = sends.list[sends.head++];
    const Posted& received = receives.list[receives.head++];
    const Message& send = *sent.message;
    const Message& receive = *received.message;
    failed_ = failed_ || send.block != receive.block || send.piece.count != receive.piece.count ||
              send.piece.rank != from || receive.piece.rank != to || sent.lane != received.lane;
    if (!failed_) move_data(Move{to, send.block, {send.piece}, {receive.piece}}, sent.lane);
    --ranks_[at(from)].sends;
    --ranks_[at(to)].receives;
    blocks_sent_ += send.piece.count;
    return true;
  }

  void move_data(const Move& move, int lane) {
    if (lane < 0 || at(lane) >= memory_.size()) failed_ = true;
    if (failed_) return;
    detail::Memory& memory = memory_[at(lane)];
    for (const Piece& piece : move.from) {
      for (int i = 0; i < piece.count; ++i) {
        const int value = memory.value(piece, i);
        failed_ = failed_ || value == detail::Symbols::undefined || memory.symbols.block(value) != move.block + i;
      }
    }
    if (!failed_) memory.perform(move);
  }

  bool advance(int rank) {
    Progress& own = ranks_[at(rank)];
    const MessagePlan& plan = plans_[at(rank)];
    if (own.step == plan.steps.size()) return false;
    const MessageStep& step = plan.steps[own.step];
    if (!own.posted) {
      for (const Message& message : step.sends) {
        sends_[pair(rank, message.peer)].list.push_back(Posted{&message, step.lane});
      }
      for (const Message& message : step.receives) {
        receives_[pair(message.peer, rank)].list.push_back(Posted{&message, step.lane});
      }
      own.sends = static_cast<int>(step.sends.size());
      own.receives = static_cast<int>(step.receives.size());
      own.posted = true;
      return true;
    }
    if (!own.moved && own.receives == 0) {
      for (const Move& move : step.moves) move_data(move, step.lane);
      own.moved = true;
      return true;
    }
    if (!own.moved || own.sends != 0) return false;
    ++own.step;
    own.posted = false;
    own.moved = false;
    return true;
  }

  const std::vector<MessagePlan>& plans_;
  std::vector<detail::Memory> memory_;  ///< by lane
  std::vector<Progress> ranks_;
  std::vector<Queue> sends_;
  std::vector<Queue> receives_;
  std::int64_t blocks_sent_ = 0;
  int passes_ = 0;
  bool failed_ = false;
};

}  // namespace meshwise::test
