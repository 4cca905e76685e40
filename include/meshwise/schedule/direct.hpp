// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "meshwise/schedule/generator.hpp"

namespace meshwise {

/// One round in which the ranks share the work and touch each other's memory at will.
///
/// all_reduce: rank b reads block b of everybody, combines in rank order and stores the result at everybody: every
/// input byte is read once and every output byte written once, the floor of any memory-to-memory all-reduce.
/// reduce_scatter: rank b combines block b. all_gather: every rank multicasts its block. broadcast: rank b multicasts
/// the root's block b. all_to_all: every rank pulls its p blocks, beginning with its own.
///
/// Cost per rank, in blocks of a p-th of the vector: all_reduce reads p - 1 from others and writes p - 1 to them;
/// reduce_scatter reads p - 1; all_gather writes p - 1; broadcast reads 1 and writes p - 1; all_to_all reads p - 1.
/// No scratch. Order: a left fold over the ranks from 0 on, hence reproducible.
struct Direct {
  static constexpr const char* name = "direct";

  static constexpr bool supports(const Shape& shape) { return valid(shape); }

  static constexpr int rounds(const Shape&) { return 1; }

  static constexpr int scratch_slots(const Shape&) { return 0; }

  static constexpr std::vector<Move> by(const Shape& shape, int rank, int) {
    std::vector<Move> moves;
    switch (shape.operation) {
      case Operation::all_reduce:
      case Operation::reduce_scatter: reduce(moves, shape, rank); break;
      case Operation::all_gather: multicast(moves, shape, rank, rank, Piece{rank, Buffer::input, 0, 1}); break;
      case Operation::broadcast: multicast(moves, shape, rank, rank, Piece{shape.root, Buffer::input, rank, 1}); break;
      case Operation::all_to_all:
        for (int k = 0; k < shape.ranks; ++k) {
          const int peer = (rank + k) % shape.ranks;
          moves.push_back(detail::copy(rank, peer * shape.ranks + rank, Piece{peer, Buffer::input, rank, 1},
                                       Piece{rank, Buffer::output, peer, 1}));
        }
        break;
    }
    return moves;
  }

  static constexpr std::vector<int> partners(const Shape& shape, int rank, int) {
    return detail::others(shape.ranks, rank);
  }

 private:
  static constexpr void reduce(std::vector<Move>& moves, const Shape& shape, int rank) {
    // One rank in place would copy its vector onto itself.
    if (shape.ranks == 1 && shape.in_place) return;
    Move move;
    move.by = rank;
    move.block = rank;
    for (int peer = 0; peer < shape.ranks; ++peer) move.from.push_back(Piece{peer, Buffer::input, rank, 1});
    if (shape.operation == Operation::reduce_scatter) {
      move.to.push_back(Piece{rank, Buffer::output, 0, 1});
    } else {
      for (int peer = 0; peer < shape.ranks; ++peer) move.to.push_back(Piece{peer, Buffer::output, rank, 1});
    }
    moves.push_back(std::move(move));
  }

  static constexpr void multicast(std::vector<Move>& moves, const Shape& shape, int rank, int block, Piece from) {
    Move move;
    move.by = rank;
    move.block = block;
    move.from.push_back(from);
    for (int peer = 0; peer < shape.ranks; ++peer) {
      const Piece to{peer, Buffer::output, block, 1};
      if (place(shape, from) != place(shape, to)) move.to.push_back(to);
    }
    if (!move.to.empty()) moves.push_back(std::move(move));
  }
};

static_assert(Generator<Direct>);

}  // namespace meshwise
