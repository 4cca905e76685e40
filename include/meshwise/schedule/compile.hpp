// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "meshwise/core/detail/list.hpp"
#include "meshwise/schedule/detail/lane_order.hpp"
#include "meshwise/schedule/generator.hpp"
#include "meshwise/schedule/plan.hpp"

namespace meshwise {

namespace detail {

/// Who touched the slots of some ranks last, as far as a later reader or writer must wait for it.
///
/// A read waits for the last write. A write waits for the reads since the last write, or for that write if there are
/// none: what lies further back has been waited for by those, and acquire and release carry it along.
class History {
 public:
  constexpr History(const Shape& shape, int scratch_slots, const std::vector<int>& watched)
      : shape_(shape), ordinal_(static_cast<std::size_t>(shape.ranks), -1) {
    for (const int rank : watched) {
      input_ = input_ > input_slots(shape, rank) ? input_ : input_slots(shape, rank);
      output_ = output_ > output_slots(shape, rank) ? output_ : output_slots(shape, rank);
    }
    stride_ = input_ + output_ + scratch_slots;
    int count = 0;
    for (const int rank : watched) ordinal_[static_cast<std::size_t>(rank)] = count++;
    slots_.resize(static_cast<std::size_t>(count) * static_cast<std::size_t>(stride_));
  }

  /// Calls need(rank, step) for everything that a move of `rank` must wait for.
  template <class Need>
  constexpr void conflicts(const Move& move, Need need) const {
    for (const Piece& piece : move.from) {
      for (int i = 0; i < piece.count; ++i) {
        const Slot& slot = slots_[index(piece, i)];
        if (slot.writer.rank >= 0) need(slot.writer.rank, slot.writer.step);
      }
    }
    for (const Piece& piece : move.to) {
      for (int i = 0; i < piece.count; ++i) {
        const Slot& slot = slots_[index(piece, i)];
        if (slot.readers < 0 && slot.writer.rank >= 0) need(slot.writer.rank, slot.writer.step);
        for (int r = slot.readers; r >= 0; r = readers_[static_cast<std::size_t>(r)].next) {
          const Access& reader = readers_[static_cast<std::size_t>(r)];
          need(reader.rank, reader.step);
        }
      }
    }
  }

  /// Remembers what step `step` of rank `move.by` touches. Sources first: a move may write what it reads.
  constexpr void record(const Move& move, int step) {
    for (const Piece& piece : move.from) {
      if (ordinal_[static_cast<std::size_t>(piece.rank)] < 0) continue;
      for (int i = 0; i < piece.count; ++i) {
        Slot& slot = slots_[index(piece, i)];
        readers_.push_back(Access{move.by, step, slot.readers});
        slot.readers = static_cast<int>(readers_.size()) - 1;
      }
    }
    for (const Piece& piece : move.to) {
      if (ordinal_[static_cast<std::size_t>(piece.rank)] < 0) continue;
      for (int i = 0; i < piece.count; ++i) {
        Slot& slot = slots_[index(piece, i)];
        slot.writer = Access{move.by, step, -1};
        slot.readers = -1;
      }
    }
  }

 private:
  struct Access {
    int rank = -1;
    int step = 0;
    int next = -1;
  };
  struct Slot {
    Access writer;
    int readers = -1;  ///< head of the list of reads since the last write
  };

  constexpr std::size_t index(const Piece& piece, int i) const {
    const Piece at = place(shape_, piece);
    const int base = at.buffer == Buffer::input ? 0 : at.buffer == Buffer::output ? input_ : input_ + output_;
    return static_cast<std::size_t>(ordinal_[static_cast<std::size_t>(at.rank)]) * static_cast<std::size_t>(stride_) +
           static_cast<std::size_t>(base + at.slot + i);
  }

  Shape shape_;
  std::vector<int> ordinal_;  ///< of each rank among the watched ones, -1 for the others
  int input_ = 0;
  int output_ = 0;
  int stride_ = 0;
  List<Slot> slots_;
  List<Access> readers_;
};

/// A set of ranks that remembers the order of insertion.
class RankSet {
 public:
  explicit constexpr RankSet(int ranks) : in_(static_cast<std::size_t>(ranks), 0) {}

  constexpr void add(int rank) {
    char& in = in_[static_cast<std::size_t>(rank)];
    if (in != 0) return;
    in = 1;
    list_.push_back(rank);
  }

  constexpr const std::vector<int>& list() const { return list_; }

 private:
  List<char> in_;
  std::vector<int> list_;
};

constexpr bool touches(const Move& move, int rank) {
  for (const Piece& piece : move.from) {
    if (piece.rank == rank) return true;
  }
  for (const Piece& piece : move.to) {
    if (piece.rank == rank) return true;
  }
  return false;
}

/// The plan for several lanes from that for one: every lane has the same waits on its own steps, the first lane to
/// need an entry waits for it, and the exit waits for the last lane. `orders` of the plan's rank and of all it names.
/// P: Plan, dependent here and in `compile`, so that those who compile none do not instantiate its vectors.
template <class P>
constexpr void spread_over_lanes(P& plan, int lanes, int rounds, const List<LaneOrder>& orders) {
  const P single = std::move(plan);
  plan = P{single.shape, single.rank, lanes, single.scratch_slots, {}, {}};
  plan.steps.reserve(single.steps.size() * static_cast<std::size_t>(lanes));
  std::vector<int> known(orders.size(), 0);
  const auto add = [&](auto& waits, Wait wait, int lane) {
    const auto peer = static_cast<std::size_t>(wait.rank);
    if (wait.step > 1) wait.step = orders[peer].index(wait.step - 2, lane, lanes) + 2;
    if (wait.step <= known[peer]) return;
    waits.push_back(wait);
    known[peer] = wait.step;
  };
  const LaneOrder& own = orders[static_cast<std::size_t>(single.rank)];
  in_lane_order(rounds, lanes, [&](int round, int lane) {
    for (int i = own.begin(round); i < own.end(round); ++i) {
      const auto& step = single.steps[static_cast<std::size_t>(i)];
      plan.steps.push_back({step.move, lane, {}});
      for (const Wait& wait : step.waits) add(plan.steps.back().waits, wait, lane);
    }
  });
  for (const Wait& wait : single.exit) add(plan.exit, wait, lanes - 1);
}

}  // namespace detail

/// The plan of one rank: its moves, each with the waits that make it safe however the ranks are skewed.
///
/// `lanes` slice every slot, scratch included, outside of the schedule: each lane runs all rounds on its slice, one
/// round behind the lane before it. Every rank orders its steps by round + lane, then lane, then as `by` lists them.
/// Waits follow from what the moves touch, nothing is written by hand. A step waits for the moves of earlier rounds on
/// its lane that wrote what it reads (on their last step), that read or wrote what it writes, and for the entry of
/// every rank whose buffer it touches. The exit waits for the last step of every rank that touches a buffer of this
/// one. A wait that an earlier one on the same rank implies is left out. Since waits only point backwards in the one
/// order of all ranks, their plans cannot dead-lock.
///
/// Cost: only the ranks that share a buffer with this one are looked at (two for a ring), each once per round; with
/// several lanes, as many steps more.
/// Errors: `invalid_argument` for a shape that `G` does not support, a rank outside of it, or no lane.
template <Generator G, class P = Plan>
constexpr P compile(const G& generator, const Shape& shape, int rank, int lanes = 1) {
  detail::require_shape("compile", generator, shape, rank);
  detail::require_lanes("compile", lanes);
  const int rounds = generator.rounds(shape);
  P plan;
  plan.shape = shape;
  plan.rank = rank;
  plan.scratch_slots = generator.scratch_slots(shape);

  detail::RankSet owners(shape.ranks);  // of the buffers that matter: mine and those I touch
  owners.add(rank);
  std::vector<int> round_of;
  for (int k = 0; k < rounds; ++k) {
    for (Move& move : generator.by(shape, rank, k)) {
      for (const Piece& piece : move.from) owners.add(piece.rank);
      for (const Piece& piece : move.to) owners.add(piece.rank);
      plan.steps.push_back({std::move(move), 0, {}});
      round_of.push_back(k);
    }
  }
  detail::RankSet actors(shape.ranks);  // all who may touch those buffers
  for (const int owner : owners.list()) {
    actors.add(owner);
    for (int k = 0; k < rounds; ++k) {
      for (const int partner : generator.partners(shape, owner, k)) actors.add(partner);
    }
  }

  // In one round nothing conflicts: there is no history to keep, which would be ranks^2 slots.
  const bool several = rounds > 1;
  std::vector<int> remembered;
  if (several) remembered = owners.list();
  detail::History history(shape, plan.scratch_slots, remembered);
  const auto size = static_cast<std::size_t>(shape.ranks);
  std::vector<int> done(size, 0);    // steps of each actor so far
  std::vector<int> known(size, 0);   // progress of each rank that my waits so far imply
  std::vector<int> needed(size, 0);  // progress that the step at hand needs
  std::vector<int> last(size, 0);    // progress after the last step that touches my buffers
  std::vector<int> peers;
  detail::List<detail::LaneOrder> orders(lanes > 1 ? size : 0);
  std::size_t mine = 0;
  for (int k = 0; k < rounds; ++k) {
    for (; mine < plan.steps.size() && round_of[mine] == k; ++mine) {
      auto& step = plan.steps[mine];
      peers.clear();
      const auto need = [&](int peer, int progress) {
        if (peer == rank) return;
        int& most = needed[static_cast<std::size_t>(peer)];
        if (most == 0) peers.push_back(peer);
        most = most > progress ? most : progress;
      };
      for (const Piece& piece : step.move.from) need(piece.rank, 1);
      for (const Piece& piece : step.move.to) need(piece.rank, 1);
      if (several) history.conflicts(step.move, [&](int peer, int index) { need(peer, index + 2); });
      for (const int peer : peers) {
        int& seen = known[static_cast<std::size_t>(peer)];
        int& progress = needed[static_cast<std::size_t>(peer)];
        if (progress > seen) {
          step.waits.push_back(Wait{peer, progress});
          seen = progress;
        }
        progress = 0;
      }
    }
    for (const int actor : actors.list()) {
      for (const Move& move : generator.by(shape, actor, k)) {
        int& index = done[static_cast<std::size_t>(actor)];
        if (several) history.record(move, index);
        if (actor != rank && detail::touches(move, rank)) last[static_cast<std::size_t>(actor)] = index + 2;
        ++index;
      }
      if (lanes > 1) orders[static_cast<std::size_t>(actor)].end_round(done[static_cast<std::size_t>(actor)]);
    }
  }
  for (const int actor : actors.list()) {
    const int progress = last[static_cast<std::size_t>(actor)];
    if (progress > known[static_cast<std::size_t>(actor)]) plan.exit.push_back(Wait{actor, progress});
  }
  if (lanes > 1) detail::spread_over_lanes(plan, lanes, rounds, orders);
  return plan;
}

/// The same for a generator without parameters.
template <Generator G>
constexpr Plan compile(const Shape& shape, int rank, int lanes = 1) {
  return compile(G{}, shape, rank, lanes);
}

}  // namespace meshwise
