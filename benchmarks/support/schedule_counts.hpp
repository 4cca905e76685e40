// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "meshwise/schedule/any_generator.hpp"
#include "meshwise/schedule/verdict.hpp"

namespace meshwise::table {

/// What a schedule moves between ranks, counted on the moves as the ranks name them, without executing them.
struct Counts {
  int rounds = 0;
  Count read;                ///< blocks that moves read from ranks other than their performer, as in Verdict
  Count written;             ///< blocks that moves write to ranks other than their performer, as in Verdict
  std::int64_t busiest = 0;  ///< blocks that the busiest rank takes in, or gives out, whichever is more
  std::int64_t path = 0;     ///< sum over rounds of the blocks that the busiest rank of the round takes in or gives out
};

/// Counts round by round. Cost: one call of `by` per rank and round, O(ranks) memory.
inline Counts count(const AnyGenerator& generator, const Shape& shape) {
  const auto size = static_cast<std::size_t>(shape.ranks);
  std::vector<std::int64_t> read(size, 0);
  std::vector<std::int64_t> written(size, 0);
  std::vector<std::int64_t> taken(size, 0);
  std::vector<std::int64_t> given(size, 0);
  std::vector<std::int64_t> taken_before(size, 0);
  std::vector<std::int64_t> given_before(size, 0);
  Counts counts;
  counts.rounds = generator.rounds(shape);
  for (int k = 0; k < counts.rounds; ++k) {
    taken_before = taken;
    given_before = given;
    for (int rank = 0; rank < shape.ranks; ++rank) {
      const auto by = static_cast<std::size_t>(rank);
      for (const Move& move : generator.by(shape, rank, k)) {
        for (const Piece& piece : move.from) {
          if (piece.rank == rank) continue;
          read[by] += piece.count;
          taken[by] += piece.count;
          given[static_cast<std::size_t>(piece.rank)] += piece.count;
        }
        for (const Piece& piece : move.to) {
          if (piece.rank == rank) continue;
          written[by] += piece.count;
          given[by] += piece.count;
          taken[static_cast<std::size_t>(piece.rank)] += piece.count;
        }
      }
    }
    std::int64_t most = 0;
    for (std::size_t r = 0; r < size; ++r) {
      most = std::max({most, taken[r] - taken_before[r], given[r] - given_before[r]});
    }
    counts.path += most;
  }
  for (std::size_t r = 0; r < size; ++r) {
    counts.read.total += read[r];
    counts.read.most = std::max(counts.read.most, read[r]);
    counts.written.total += written[r];
    counts.written.most = std::max(counts.written.most, written[r]);
    counts.busiest = std::max({counts.busiest, taken[r], given[r]});
  }
  return counts;
}

}  // namespace meshwise::table
