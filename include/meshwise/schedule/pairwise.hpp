// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "meshwise/schedule/detail/logarithm.hpp"
#include "meshwise/schedule/generator.hpp"

namespace meshwise {

/// In every round each rank reads from one other rank and serves one; blocks come straight from where they were.
///
/// In round i = 1, ..., p - 1 rank r reads from rank r xor i if p is a power of two (both ends are the same pair), else
/// from rank r + i (mod p). all_to_all: the block for r. all_gather: the peer's block. reduce_scatter: the peer's
/// contribution to block r, added to what r has. p - 1 rounds and p - 1 blocks read per rank, all of them from inputs:
/// no rank ever waits for the results of another one. No scratch.
///
/// Order of reduce_scatter: a left fold that begins with the own and the first peer's contribution, the lower rank
/// first, and goes on with those of the other peers, in the order of rounds. It differs from block to block; only for
/// 2 ranks it is rank order (in rank order all ranks would read from one and the same at a time).
///
/// Source: Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in MPICH, 2005.
struct Pairwise {
  static constexpr const char* name = "pairwise";

  static constexpr bool supports(const Shape& shape) {
    if (!valid(shape)) return false;
    return shape.operation == Operation::all_to_all || shape.operation == Operation::reduce_scatter ||
           shape.operation == Operation::all_gather;
  }

  static constexpr int rounds(const Shape& shape) {
    if (shape.ranks == 1) return shape.in_place ? 0 : 1;
    return shape.ranks - 1;
  }

  static constexpr int scratch_slots(const Shape&) { return 0; }

  static constexpr std::vector<Move> by(const Shape& shape, int rank, int round) {
    std::vector<Move> moves;
    const int p = shape.ranks;
    const bool reduces = shape.operation == Operation::reduce_scatter;
    if (p == 1 || (round == 0 && !reduces)) add(moves, shape, rank, rank);
    if (p == 1) return moves;
    const int peer = power(shape) ? rank ^ (round + 1) : detail::around(p, rank, round + 1);
    if (!reduces) {
      add(moves, shape, rank, peer);
      return moves;
    }
    const Piece mine = round == 0 ? Piece{rank, Buffer::input, rank, 1} : Piece{rank, Buffer::output, 0, 1};
    const Piece theirs{peer, Buffer::input, rank, 1};
    const bool swap = round == 0 && peer < rank;
    moves.push_back(detail::copy(rank, rank, swap ? theirs : mine, Piece{rank, Buffer::output, 0, 1}));
    moves.back().from.push_back(swap ? mine : theirs);
    return moves;
  }

  static constexpr std::vector<int> partners(const Shape& shape, int rank, int round) {
    if (shape.ranks == 1) return {};
    return {power(shape) ? rank ^ (round + 1) : detail::around(shape.ranks, rank, -(round + 1))};
  }

 private:
  static constexpr bool power(const Shape& shape) { return detail::power_of_two(shape.ranks); }

  /// The block that `rank` gets from `peer`, itself included.
  static constexpr void add(std::vector<Move>& moves, const Shape& shape, int rank, int peer) {
    const bool spreads = shape.operation == Operation::all_to_all;
    const int block = spreads ? peer * shape.ranks + rank : peer;
    detail::add_copy(moves, shape, rank, block, Piece{peer, Buffer::input, spreads ? rank : 0, 1},
                     Piece{rank, Buffer::output, shape.operation == Operation::reduce_scatter ? 0 : peer, 1});
  }
};

static_assert(Generator<Pairwise>);

}  // namespace meshwise
