// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <utility>

#include "meshwise/schedule/algorithm.hpp"
#include "meshwise/schedule/cost.hpp"
#include "meshwise/schedule/verify.hpp"

namespace meshwise::detail {

/// An algorithm that is considered: with its prediction, or with why it is not.
struct Candidate {
  Algorithm algorithm = Algorithm::automatic;
  const char* refusal = nullptr;  ///< why it cannot be chosen; null if it can
  int lanes = 1;
  Cost cost;
};

/// What is proven about the order in which a schedule combines.
struct Order {
  bool canonical = false;      ///< as Verdict::canonical: reproducible
  bool in_rank_order = false;  ///< as Verdict::in_rank_order
};

/// The most slots that a proof touches: about a second; a direct all_reduce of 1400 ranks is within it.
inline constexpr std::int64_t order_effort = std::int64_t{1} << 22;

/// Proves the order by verifying the schedule itself; nothing is proven of one that is too large for that.
inline Order prove_order(const AnyGenerator& generator, const Shape& shape) {
  Schedule schedule;
  schedule.shape = shape;
  schedule.scratch_slots = generator.scratch_slots(shape);
  std::int64_t slots = 0;
  const int rounds = generator.rounds(shape);
  for (int k = 0; k < rounds; ++k) {
    Round round;
    for (int rank = 0; rank < shape.ranks; ++rank) {
      for (Move& move : generator.by(shape, rank, k)) {
        slots += move.from[0].count * static_cast<std::int64_t>(move.from.size() + move.to.size());
        if (slots > order_effort) return {};
        round.push_back(std::move(move));
      }
      if (++slots > order_effort) return {};
    }
    schedule.rounds.push_back(std::move(round));
  }
  const Verdict verdict = verify(schedule);
  return Order{verdict.ok() && verdict.canonical, verdict.ok() && verdict.in_rank_order};
}

/// The class of a size, so that sizes up to a factor of two apart are treated alike: 0, then by the highest bit.
constexpr int size_class(std::uint64_t bytes) { return static_cast<int>(std::bit_width(bytes)); }

/// The size that stands for a class, from its middle.
constexpr std::uint64_t class_bytes(int number) {
  if (number < 2) return static_cast<std::uint64_t>(number);
  return std::uint64_t{3} << (number - 2);
}

/// Which of two predictions is lower, so that all ranks agree: what is equal by calculation must not be told apart by
/// how a compiler rounds, hence single precision.
inline bool cheaper(const Cost& a, const Cost& b) {
  return static_cast<float>(a.seconds) < static_cast<float>(b.seconds);
}

/// Predicts an algorithm with the lanes that suit it: doubled as long as that helps, so that it is the minimum over all
/// numbers tried, which does not fall when bytes grow.
///
/// lanes: how many to use; 0: as many as are best. A schedule of one round gains nothing from lanes.
inline void predict(Candidate& candidate, const AnyGenerator& generator, const Shape& shape, std::uint64_t bytes,
                    const Topology& topology, int lanes, std::int64_t budget) {
  Flow flow(generator, shape);
  CostWalk walk(flow, topology);
  candidate.lanes = lanes > 0 ? lanes : 1;
  candidate.cost = walk_cost(flow, walk, bytes, candidate.lanes, budget);
  if (lanes > 0 || flow.rounds() < 2 || !candidate.cost.walked) return;
  for (int more = 2; more <= 64; more *= 2) {
    const Cost cost = walk_cost(flow, walk, bytes, more, budget);
    if (!cost.walked || !cheaper(cost, candidate.cost)) break;
    candidate.lanes = more;
    candidate.cost = cost;
  }
}

}  // namespace meshwise::detail
