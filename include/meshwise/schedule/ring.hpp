// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "meshwise/schedule/generator.hpp"

namespace meshwise {

/// Every rank talks to its two neighbours only, and pulls from the left one.
///
/// reduce_scatter: the sum of block b starts at rank b + 1 and travels right until it reaches rank b, p - 1 rounds;
/// it lies in two alternating scratch slots, so that the input stays as it was. all_gather: block b travels right
/// from rank b, p - 1 rounds. all_reduce: both, 2(p - 1) rounds, with partial sums in the output. broadcast: a chain
/// from the root through which p blocks are pipelined, 2(p - 1) rounds. all_to_all: a rotation, in round k rank r
/// pulls from rank r - k, p rounds (the one operation that leaves the neighbourhood). One rank copies locally.
///
/// Cost per rank, in blocks of a p-th of the vector: all_reduce reads 2(p - 1) from others, reduce_scatter,
/// all_gather and all_to_all p - 1, broadcast p (the root none); nothing is written to others. Order: block b is a
/// left fold over b + 1, b + 2, ..., b, which is not rank order.
///
/// Source: Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009.
struct Ring {
  static constexpr const char* name = "ring";

  static constexpr bool supports(const Shape& shape) { return valid(shape); }

  static constexpr int rounds(const Shape& shape) {
    const int p = shape.ranks;
    if (p == 1) return shape.in_place ? 0 : 1;
    switch (shape.operation) {
      case Operation::all_reduce:
      case Operation::broadcast: return 2 * (p - 1);
      case Operation::reduce_scatter:
      case Operation::all_gather: return p - 1;
      case Operation::all_to_all: return p;
    }
    return 0;
  }

  static constexpr int scratch_slots(const Shape& shape) {
    if (shape.operation != Operation::reduce_scatter || shape.ranks <= 2) return 0;
    return shape.ranks == 3 ? 1 : 2;
  }

  static constexpr std::vector<Move> by(const Shape& shape, int rank, int round) {
    std::vector<Move> moves;
    const int p = shape.ranks;
    const int left = detail::around(p, rank, -1);
    if (p == 1) {
      detail::add_copy(moves, shape, 0, 0, Piece{0, Buffer::input, 0, 1}, Piece{0, Buffer::output, 0, 1});
      return moves;
    }
    switch (shape.operation) {
      case Operation::all_reduce:
        if (round < p - 1) {
          const int block = detail::around(p, rank, -2 - round);
          const Buffer carried = round == 0 ? Buffer::input : Buffer::output;
          moves.push_back(join(rank, block, Piece{left, carried, block, 1}, Piece{rank, Buffer::output, block, 1}));
        } else {
          const int block = detail::around(p, rank, -1 - (round - (p - 1)));
          moves.push_back(
              detail::copy(rank, block, Piece{left, Buffer::output, block, 1}, Piece{rank, Buffer::output, block, 1}));
        }
        break;
      case Operation::reduce_scatter: {
        const int block = detail::around(p, rank, -2 - round);
        const Piece carried =
            round == 0 ? Piece{left, Buffer::input, block, 1} : Piece{left, Buffer::scratch, (round - 1) % 2, 1};
        const Piece result =
            round == p - 2 ? Piece{rank, Buffer::output, 0, 1} : Piece{rank, Buffer::scratch, round % 2, 1};
        moves.push_back(join(rank, block, carried, result));
        break;
      }
      case Operation::all_gather: {
        const int block = detail::around(p, rank, -1 - round);
        const Piece carried = round == 0 ? Piece{left, Buffer::input, 0, 1} : Piece{left, Buffer::output, block, 1};
        moves.push_back(detail::copy(rank, block, carried, Piece{rank, Buffer::output, block, 1}));
        if (round == 0) {
          detail::add_copy(moves, shape, rank, rank, Piece{rank, Buffer::input, 0, 1},
                           Piece{rank, Buffer::output, rank, 1});
        }
        break;
      }
      case Operation::broadcast: {
        // Position v of the chain takes block j in round v - 1 + j; the root only moves its own copy.
        const int position = detail::around(p, rank, -shape.root);
        const int block = position == 0 ? round : round - (position - 1);
        if (block < 0 || block >= p) break;
        const Piece to{rank, Buffer::output, block, 1};
        if (position == 0) {
          detail::add_copy(moves, shape, rank, block, Piece{rank, Buffer::input, block, 1}, to);
        } else {
          const Buffer carried = position == 1 ? Buffer::input : Buffer::output;
          moves.push_back(detail::copy(rank, block, Piece{left, carried, block, 1}, to));
        }
        break;
      }
      case Operation::all_to_all: {
        const int peer = detail::around(p, rank, -round);
        moves.push_back(detail::copy(rank, peer * p + rank, Piece{peer, Buffer::input, rank, 1},
                                     Piece{rank, Buffer::output, peer, 1}));
        break;
      }
    }
    return moves;
  }

  static constexpr std::vector<int> partners(const Shape& shape, int rank, int round) {
    std::vector<int> result;
    const int p = shape.ranks;
    if (p == 1) return result;
    if (shape.operation == Operation::all_to_all) {
      if (round != 0) result.push_back(detail::around(p, rank, round));
      return result;
    }
    if (shape.operation == Operation::broadcast) {
      const int position = detail::around(p, rank, -shape.root);
      if (position == p - 1 || round < position || round >= position + p) return result;
    }
    result.push_back(detail::around(p, rank, 1));
    return result;
  }

 private:
  /// The partial sum from the left, then the own contribution.
  static constexpr Move join(int rank, int block, Piece carried, Piece result) {
    Move move = detail::copy(rank, block, carried, result);
    move.from.push_back(Piece{rank, Buffer::input, block, 1});
    return move;
  }
};

static_assert(Generator<Ring>);

}  // namespace meshwise
