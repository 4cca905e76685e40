// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

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
  std::vector<Slot> slots_;
  std::vector<Access> readers_;
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
  std::vector<char> in_;
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

}  // namespace detail

/// The plan of one rank: its moves, each with the waits that make it safe however the ranks are skewed.
///
/// Waits follow from what the moves touch, nothing is written by hand. A step waits for the moves of earlier rounds
/// that wrote what it reads (on their last step), that read or wrote what it writes, and for the entry of every rank
/// whose buffer it touches. The exit waits for the last step of every rank that touches a buffer of this one. A wait
/// that an earlier one on the same rank implies is left out. Since waits only point to earlier rounds, the plans of
/// all ranks cannot dead-lock.
///
/// Cost: only the ranks that share a buffer with this one are looked at (two for a ring), each once per round.
/// Errors: `invalid_argument` for a shape that `G` does not support, or a rank outside of it.
template <Generator G>
constexpr Plan compile(const Shape& shape, int rank) {
  detail::require_shape<G>("compile", shape, rank);
  const int rounds = G::rounds(shape);
  Plan plan;
  plan.shape = shape;
  plan.rank = rank;
  plan.scratch_slots = G::scratch_slots(shape);

  detail::RankSet owners(shape.ranks);  // of the buffers that matter: mine and those I touch
  owners.add(rank);
  std::vector<int> round_of;
  for (int k = 0; k < rounds; ++k) {
    for (Move& move : G::by(shape, rank, k)) {
      for (const Piece& piece : move.from) owners.add(piece.rank);
      for (const Piece& piece : move.to) owners.add(piece.rank);
      plan.steps.push_back(Step{std::move(move), {}});
      round_of.push_back(k);
    }
  }
  detail::RankSet actors(shape.ranks);  // all who may touch those buffers
  for (const int owner : owners.list()) {
    actors.add(owner);
    for (int k = 0; k < rounds; ++k) {
      for (const int partner : G::partners(shape, owner, k)) actors.add(partner);
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
  std::size_t mine = 0;
  for (int k = 0; k < rounds; ++k) {
    for (; mine < plan.steps.size() && round_of[mine] == k; ++mine) {
      Step& step = plan.steps[mine];
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
      for (const Move& move : G::by(shape, actor, k)) {
        int& index = done[static_cast<std::size_t>(actor)];
        if (several) history.record(move, index);
        if (actor != rank && detail::touches(move, rank)) last[static_cast<std::size_t>(actor)] = index + 2;
        ++index;
      }
    }
  }
  for (const int actor : actors.list()) {
    const int progress = last[static_cast<std::size_t>(actor)];
    if (progress > known[static_cast<std::size_t>(actor)]) plan.exit.push_back(Wait{actor, progress});
  }
  return plan;
}

}  // namespace meshwise
