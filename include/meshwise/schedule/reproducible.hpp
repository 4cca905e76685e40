// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "meshwise/schedule/generator.hpp"
#include "meshwise/schedule/verify.hpp"

namespace meshwise {

/// The most pieces of moves that `reproducible` looks at.
inline constexpr std::int64_t reproducible_effort = std::int64_t{3} << 20;

/// Whether a schedule gives the one result that reproducible reductions have, proven on the schedule itself: the left
/// fold in rank order, rounded as its definition says (`Verdict::canonical`). So the result does not depend on the
/// size, the algorithm or the placement of ranks. An operation that does not combine always is.
///
/// `most_pieces` bounds the effort: a schedule of more pieces than that is not proven, hence false. The default covers
/// a direct all_reduce of 1024 ranks. False for a shape that the generator does not support.
/// Cost: that of materialise and verify at the shape, in time and memory (a second for a direct all_reduce of 1024
/// ranks); whoever asks repeatedly remembers the answer.
template <Generator G>
constexpr bool reproducible(const G& generator, const Shape& shape, std::int64_t most_pieces = reproducible_effort) {
  if (!generator.supports(shape)) return false;
  if (!combines(shape.operation)) return true;
  Schedule schedule;
  schedule.shape = shape;
  schedule.scratch_slots = generator.scratch_slots(shape);
  std::int64_t pieces = 0;
  const int rounds = generator.rounds(shape);
  for (int k = 0; k < rounds; ++k) {
    Round round;
    for (int rank = 0; rank < shape.ranks; ++rank) {
      // Asking a rank that has nothing to do is not free either.
      if (++pieces > most_pieces) return false;
      for (Move& move : generator.by(shape, rank, k)) {
        pieces += static_cast<std::int64_t>(move.from.size() + move.to.size());
        if (pieces > most_pieces) return false;
        round.push_back(std::move(move));
      }
    }
    schedule.rounds.push_back(std::move(round));
  }
  const Verdict verdict = verify(schedule);
  return verdict.ok() && verdict.canonical;
}

}  // namespace meshwise
