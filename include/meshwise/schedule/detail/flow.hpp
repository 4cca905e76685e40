// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "meshwise/core/detail/list.hpp"
#include "meshwise/schedule/any_generator.hpp"

namespace meshwise::detail {

/// One message, as lowering makes it: all that one rank has for another in one half of a round.
struct Transfer {
  int from = 0;
  int to = 0;
  double blocks = 0;
};

/// What a rank combines in a round: blocks times sources beyond the first.
struct RankWork {
  int rank = 0;
  double blocks = 0;
};

/// One round without its data: performers fetch foreign sources, combine, and deliver to foreign destinations.
struct RoundFlow {
  List<Transfer> fetched;
  List<RankWork> combined;
  List<Transfer> delivered;

  std::size_t size() const { return fetched.size() + combined.size() + delivered.size(); }
  void clear() {
    fetched.clear();
    combined.clear();
    delivered.clear();
  }
};

/// The messages of a schedule by round, made when they are asked for: rounds that are alike share one set.
class Flow {
 public:
  Flow(const AnyGenerator& generator, const Shape& shape)
      : generator_(generator),
        shape_(shape),
        rounds_(generator.rounds(shape)),
        kept_at_(static_cast<std::size_t>(rounds_), -1),
        fetched_at_(static_cast<std::size_t>(shape.ranks), 0),
        delivered_at_(static_cast<std::size_t>(shape.ranks), 0) {}

  const Shape& shape() const { return shape_; }
  int rounds() const { return rounds_; }

  /// How many rounds from this one on cost the same on every rank, itself included.
  int alike(int round) const {
    const int count = generator_.alike(shape_, round);
    return count < 1 ? 1 : count > rounds_ - round ? rounds_ - round : count;
  }

  /// The messages of a round; null if making them looks at more pieces than are left of `budget`, which pays for them.
  ///
  /// Valid until the next call.
  const RoundFlow* round(int round, std::int64_t& budget) {
    const std::size_t first = static_cast<std::size_t>(first_alike(round));
    if (kept_at_[first] >= 0) return &kept_[static_cast<std::size_t>(kept_at_[first])];
    last_.clear();
    if (hopeless(static_cast<int>(first), budget) || !build(static_cast<int>(first), budget)) return nullptr;
    if (kept_size_ + last_.size() > most_kept) return &last_;
    kept_size_ += last_.size();
    kept_at_[first] = static_cast<int>(kept_.size());
    kept_.push_back(last_);
    return &kept_.back();
  }

 private:
  static constexpr std::size_t most_kept = std::size_t{1} << 22;

  /// The first of the rounds that are alike up to where this one's run ends.
  int first_alike(int round) const {
    const int end = round + alike(round);
    int low = 0;
    int high = round;
    while (low < high) {
      const int middle = low + (high - low) / 2;
      if (middle + alike(middle) == end) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return high;
  }

  /// Whether even the least busy of three ranks would use the budget up, if all were like it: a round in which
  /// everybody deals with everybody is refused before much of it is made.
  bool hopeless(int round, std::int64_t budget) const {
    if (shape_.ranks < 4096) return false;
    std::size_t least = static_cast<std::size_t>(-1);
    for (const int rank : {1, shape_.ranks / 3, shape_.ranks - 1}) {
      std::size_t pieces = 0;
      for (const Move& move : generator_.by(shape_, rank, round)) pieces += move.from.size() + move.to.size();
      least = least < pieces ? least : pieces;
    }
    return least > static_cast<std::size_t>(budget < 0 ? 0 : budget) / static_cast<std::size_t>(shape_.ranks) + 64;
  }

  bool build(int round, std::int64_t& budget) {
    for (int rank = 0; rank < shape_.ranks; ++rank) {
      const std::vector<Move> moves = generator_.by(shape_, rank, round);
      --budget;
      double combined = 0;
      for (const Move& move : moves) {
        budget -= static_cast<std::int64_t>(move.from.size() + move.to.size());
        const double blocks = move.from[0].count;
        for (const Piece& piece : move.from) add(last_.fetched, fetched_at_, piece.rank, rank, piece.rank, blocks);
        for (const Piece& piece : move.to) add(last_.delivered, delivered_at_, rank, piece.rank, piece.rank, blocks);
        combined += blocks * static_cast<double>(move.from.size() - 1);
      }
      if (combined > 0) last_.combined.push_back(RankWork{rank, combined});
      if (budget < 0) return false;
    }
    return true;
  }

  /// Adds to the message of the pair, or begins one. The performer is the same for a while, so that one number for each
  /// peer finds the message: what it was for an earlier performer points to a message of another pair.
  static void add(List<Transfer>& transfers, List<std::uint32_t>& at, int from, int to, int peer, double blocks) {
    if (from == to) return;
    std::uint32_t& index = at[static_cast<std::size_t>(peer)];
    if (index < transfers.size() && transfers[index].from == from && transfers[index].to == to) {
      transfers[index].blocks += blocks;
      return;
    }
    index = static_cast<std::uint32_t>(transfers.size());
    transfers.push_back(Transfer{from, to, blocks});
  }

  AnyGenerator generator_;
  Shape shape_;
  int rounds_;
  List<int> kept_at_;  ///< by round, in kept_; -1
  List<RoundFlow> kept_;
  std::size_t kept_size_ = 0;
  RoundFlow last_;
  List<std::uint32_t> fetched_at_;  ///< by peer
  List<std::uint32_t> delivered_at_;
};

}  // namespace meshwise::detail
