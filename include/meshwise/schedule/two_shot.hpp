// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "meshwise/schedule/generator.hpp"

namespace meshwise {

/// all_reduce in two rounds: rank b combines block b of everybody in its own output, then every rank pulls the other
/// blocks from those who combined them. Nobody writes to another rank's memory.
///
/// Rounds: 2. Cost per rank, in blocks of a p-th of the vector: reads 2(p - 1) from others. In place too. No scratch.
/// Order: a left fold over the ranks from 0 on in one move, hence reproducible.
struct TwoShot {
  static constexpr const char* name = "two_shot";

  static constexpr bool supports(const Shape& shape) {
    return valid(shape) && shape.operation == Operation::all_reduce;
  }

  static constexpr int rounds(const Shape& shape) { return shape.ranks == 1 ? 1 : 2; }

  static constexpr int scratch_slots(const Shape&) { return 0; }

  static constexpr std::vector<Move> by(const Shape& shape, int rank, int round) {
    std::vector<Move> moves;
    const int p = shape.ranks;
    if (p == 1 && shape.in_place) return moves;
    if (round == 0) {
      Move move;
      move.by = rank;
      move.block = rank;
      for (int peer = 0; peer < p; ++peer) move.from.push_back(Piece{peer, Buffer::input, rank, 1});
      move.to.push_back(Piece{rank, Buffer::output, rank, 1});
      moves.push_back(std::move(move));
    } else {
      for (const int peer : detail::others(p, rank)) {
        moves.push_back(
            detail::copy(rank, peer, Piece{peer, Buffer::output, peer, 1}, Piece{rank, Buffer::output, peer, 1}));
      }
    }
    return moves;
  }

  static constexpr std::vector<int> partners(const Shape& shape, int rank, int) {
    return detail::others(shape.ranks, rank);
  }
};

static_assert(Generator<TwoShot>);

}  // namespace meshwise
