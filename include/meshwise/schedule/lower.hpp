// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "meshwise/schedule/detail/lane_order.hpp"
#include "meshwise/schedule/generator.hpp"
#include "meshwise/schedule/message_plan.hpp"

namespace meshwise {

namespace detail {

/// Lowers the moves of one round, as one rank sees them, to a fetching and a delivering step.
/// P: MessagePlan, dependent here and in `lower`, so that those who lower nothing do not compile its vectors.
template <class P>
class Lowering {
 public:
  constexpr Lowering(const Shape& shape, int rank, int first_free)
      : shape_(shape), rank_(rank), first_free_(first_free), next_free_(first_free) {}

  /// A move that this rank performs.
  constexpr void perform(const Move& move) {
    const int count = move.from[0].count;
    const Piece* home = nullptr;  // the first destination at home, if any
    for (const Piece& piece : move.to) {
      if (piece.rank == rank_ && home == nullptr) home = &piece;
    }
    Piece result;
    if (move.from.size() == 1 && move.from[0].rank == rank_) {
      result = move.from[0];
    } else if (move.from.size() == 1) {
      result = home != nullptr ? *home : reserve(count);
      fetch_.receives.push_back(Message{move.from[0].rank, move.block, result});
    } else {
      Move combine{rank_, move.block, {}, {}};
      for (const Piece& piece : move.from) {
        combine.from.push_back(piece.rank == rank_ ? piece : reserve(count));
        if (piece.rank != rank_) fetch_.receives.push_back(Message{piece.rank, move.block, combine.from.back()});
      }
      result = home != nullptr ? *home : reserve(count);
      combine.to.push_back(result);
      fetch_.moves.push_back(std::move(combine));
    }
    Move spread{rank_, move.block, {result}, {}};
    for (const Piece& piece : move.to) {
      if (piece.rank == rank_ && !same(piece, result)) spread.to.push_back(piece);
    }
    if (!spread.to.empty()) fetch_.moves.push_back(std::move(spread));
    for (const Piece& piece : move.to) {
      if (piece.rank != rank_) deliver_.sends.push_back(Message{piece.rank, move.block, result});
    }
  }

  /// A move that another rank performs: it fetches sources from here and delivers results to here.
  constexpr void serve(const Move& move) {
    for (const Piece& piece : move.from) {
      if (piece.rank == rank_) fetch_.sends.push_back(Message{move.by, move.block, piece});
    }
    for (const Piece& piece : move.to) {
      if (piece.rank == rank_) deliver_.receives.push_back(Message{move.by, move.block, piece});
    }
  }

  /// Ends the round: appends what there is to do. The scratch slots it took are free again afterwards.
  constexpr void finish(P& plan) {
    if (plan.scratch_slots < next_free_) plan.scratch_slots = next_free_;
    for (Half* step : {&fetch_, &deliver_}) {
      if (!step->sends.empty() || !step->receives.empty() || !step->moves.empty()) {
        plan.steps.push_back(std::move(*step));
      }
      *step = Half{};
    }
    next_free_ = first_free_;
  }

 private:
  using Half = typename decltype(P::steps)::value_type;

  /// Whether two pieces of this rank need no copy. Where one plan serves in and out of place, only literally.
  constexpr bool same(const Piece& a, const Piece& b) const {
    const bool both = rooted(shape_.operation) && shape_.operation != Operation::broadcast;
    return both ? a == b : place(shape_, a) == place(shape_, b);
  }

  constexpr Piece reserve(int count) {
    const Piece piece{rank_, Buffer::scratch, next_free_, count};
    next_free_ += count;
    return piece;
  }

  Shape shape_;
  int rank_;
  int first_free_;
  int next_free_;
  Half fetch_;
  Half deliver_;
};

}  // namespace detail

/// The plan of one rank on a fabric that has only messages: each round becomes at most two steps.
///
/// In the first step the performer of a move receives the foreign sources, each in a scratch slot of its own (the only
/// source of a copy goes to its destination), and combines them in the move's order; in the second it sends the result
/// to the foreign destinations. So a schedule gives the same bits on both kinds of fabric. A pull of one source is one
/// step at both ends, and so is a push. Every rank counts rounds alike and leaves out the steps in which it has nothing
/// to do, which cannot dead-lock: a message is in the same step of the same round at both ends.
///
/// `lanes` slice every slot, scratch included, outside of the schedule; all ranks run the rounds of all lanes in the
/// order of round + lane, then lane, as `compile` has it, each round of a lane being its one or two steps.
///
/// Scratch: that of the schedule, plus a slot for each foreign source that the rank combines in one round (one for a
/// ring, p - 1 for a direct reduction) and for a result without a destination at home.
/// Cost: the moves of this rank and of its partners in each round; with several lanes, as many steps more.
/// Errors: `invalid_argument` for a shape that `G` does not support, a rank outside of it, or no lane.
template <Generator G, class P = MessagePlan>
constexpr P lower(const G& generator, const Shape& shape, int rank, int lanes = 1) {
  detail::require_shape("lower", generator, shape, rank);
  detail::require_lanes("lower", lanes);
  P plan;
  plan.shape = shape;
  plan.rank = rank;
  plan.lanes = lanes;
  plan.scratch_slots = generator.scratch_slots(shape);
  detail::Lowering<P> lowering(shape, rank, plan.scratch_slots);
  detail::LaneOrder order;
  const int rounds = generator.rounds(shape);
  for (int k = 0; k < rounds; ++k) {
    for (const Move& move : generator.by(shape, rank, k)) lowering.perform(move);
    for (const int partner : generator.partners(shape, rank, k)) {
      for (const Move& move : generator.by(shape, partner, k)) lowering.serve(move);
    }
    lowering.finish(plan);
    if (lanes > 1) order.end_round(static_cast<int>(plan.steps.size()));
  }
  if (lanes == 1) return plan;
  const auto single = std::move(plan.steps);
  plan.steps.clear();
  plan.steps.reserve(single.size() * static_cast<std::size_t>(lanes));
  detail::in_lane_order(rounds, lanes, [&](int round, int lane) {
    for (int i = order.begin(round); i < order.end(round); ++i) {
      plan.steps.push_back(single[static_cast<std::size_t>(i)]);
      plan.steps.back().lane = lane;
    }
  });
  return plan;
}

/// The same for a generator without parameters.
template <Generator G>
constexpr MessagePlan lower(const Shape& shape, int rank, int lanes = 1) {
  return lower(G{}, shape, rank, lanes);
}

}  // namespace meshwise
