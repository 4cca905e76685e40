// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "meshwise/schedule/generator.hpp"

namespace meshwise::test {

/// A generator as awkward as the rules allow: moves are performed by ranks that own none of their ends, results
/// have no home at the performer, pieces have several slots, and the partners are a superset.
///
/// all_reduce: rank r + 1 combines block r and stores it at rank r, then rank r + 2 spreads it to the others.
/// all_gather: rank r + 1 makes the own copy of rank r, rank 0 collects, everybody else takes all p slots in one move.
struct Proxy {
  static constexpr const char* name = "proxy";

  static constexpr bool supports(const Shape& shape) {
    return valid(shape) && (shape.operation == Operation::all_reduce || shape.operation == Operation::all_gather);
  }
  static constexpr int rounds(const Shape& shape) { return shape.operation == Operation::all_reduce ? 2 : 3; }
  static constexpr int scratch_slots(const Shape&) { return 0; }

  static constexpr std::vector<Move> by(const Shape& shape, int rank, int round) {
    std::vector<Move> moves;
    const int p = shape.ranks;
    if (shape.operation == Operation::all_reduce) {
      const int block = detail::around(p, rank, round == 0 ? -1 : -2);
      const Piece result{block, Buffer::output, block, 1};
      Move move{rank, block, {}, {}};
      if (round == 0) {
        if (p == 1 && shape.in_place) return moves;
        for (int q = 0; q < p; ++q) move.from.push_back(Piece{q, Buffer::input, block, 1});
        move.to.push_back(result);
      } else {
        move.from.push_back(result);
        for (int q = p - 1; q >= 0; --q) {
          if (q != block) move.to.push_back(Piece{q, Buffer::output, block, 1});
        }
      }
      if (!move.to.empty()) moves.push_back(move);
    } else if (round == 0) {
      const int block = detail::around(p, rank, -1);
      detail::add_copy(moves, shape, rank, block, Piece{block, Buffer::input, 0, 1},
                       Piece{block, Buffer::output, block, 1});
    } else if (round == 1 && rank == 0) {
      for (int q = p - 1; q > 0; --q) {
        moves.push_back(detail::copy(0, q, Piece{q, Buffer::output, q, 1}, Piece{0, Buffer::output, q, 1}));
      }
    } else if (round == 2 && rank != 0) {
      moves.push_back(detail::copy(rank, 0, Piece{0, Buffer::output, 0, p}, Piece{rank, Buffer::output, 0, p}));
    }
    return moves;
  }

  static constexpr std::vector<int> partners(const Shape& shape, int rank, int) {
    return detail::others(shape.ranks, rank);
  }
};

static_assert(Generator<Proxy>);

}  // namespace meshwise::test
