// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "meshwise/schedule/generator.hpp"

namespace meshwise {

/// Every rank talks to its two neighbours only: it pulls from the left one (in exclusive_scan it pushes to the right).
///
/// reduce_scatter: the sum of block b starts at rank b + 1 and travels right until it reaches rank b, p - 1 rounds;
/// it lies in two alternating scratch slots, so that the input stays as it was. all_gather: block b travels right
/// from rank b, p - 1 rounds. all_reduce: both, 2(p - 1) rounds, with partial sums in the output. broadcast: a chain
/// from the root through which p blocks are pipelined, 2(p - 1) rounds; reduce: a chain that ends at the root,
/// likewise, with partial sums in two scratch slots. all_to_all: a rotation, in round k rank r pulls from rank r - k,
/// p rounds (the one operation that leaves the neighbourhood). inclusive_scan: a chain from rank 0 to rank p - 1,
/// pipelined over p blocks, 2(p - 1) rounds; exclusive_scan the same, rank r storing the sum of its prefix and its
/// contribution at rank r + 1; in place that sum waits in one of three scratch slots until the contribution it
/// overwrites has been used, one round more. One rank copies locally. gather and scatter have no ring.
///
/// Cost per rank, in blocks of a p-th of the vector: all_reduce reads 2(p - 1) from others, reduce_scatter,
/// all_gather and all_to_all p - 1; broadcast, reduce and inclusive_scan p, all ranks but one; exclusive_scan writes p
/// to others, all ranks but one. Nothing else is written to others. Order: block b is a left fold over b + 1, b + 2,
/// ..., b, in reduce over root + 1, ..., root; scans keep rank order.
///
/// Source: Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009.
struct Ring {
  static constexpr const char* name = "ring";

  static constexpr bool supports(const Shape& shape) {
    return valid(shape) && shape.operation != Operation::gather && shape.operation != Operation::scatter &&
           shape.operation != Operation::exchange;
  }

  static constexpr int rounds(const Shape& shape) {
    const int p = shape.ranks;
    if (p == 1) return alone(shape) ? 1 : 0;
    switch (shape.operation) {
      case Operation::all_reduce:
      case Operation::broadcast:
      case Operation::reduce:
      case Operation::inclusive_scan: return 2 * (p - 1);
      case Operation::exclusive_scan: return 2 * (p - 1) + (late(shape) ? 1 : 0);
      case Operation::reduce_scatter:
      case Operation::all_gather: return p - 1;
      case Operation::all_to_all: return p;
      default: return 0;
    }
  }

  static constexpr int scratch_slots(const Shape& shape) {
    if (shape.ranks <= 2) return 0;
    switch (shape.operation) {
      case Operation::reduce_scatter: return shape.ranks == 3 ? 1 : 2;
      case Operation::reduce: return 2;
      case Operation::exclusive_scan: return late(shape) ? 3 : 0;
      default: return 0;
    }
  }

  /// In a pipelined chain the ranks at work change from round to round, in a rotation the links.
  static constexpr int alike(const Shape& shape, int round) {
    const int p = shape.ranks;
    if (p == 1) return 1;
    switch (shape.operation) {
      case Operation::all_reduce: return round < p - 1 ? p - 1 - round : 2 * (p - 1) - round;
      case Operation::reduce_scatter: return p - 1 - round;
      case Operation::all_gather: return round == 0 && !shape.in_place ? 1 : p - 1 - round;
      default: return 1;
    }
  }

  static constexpr std::vector<Move> by(const Shape& shape, int rank, int round) {
    std::vector<Move> moves;
    const int p = shape.ranks;
    const int left = detail::around(p, rank, -1);
    if (p == 1) {
      if (alone(shape)) {
        moves.push_back(detail::copy(0, 0, Piece{0, Buffer::input, 0, 1}, Piece{0, Buffer::output, 0, 1}));
      }
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
      case Operation::all_to_all: {
        const int peer = detail::around(p, rank, -round);
        moves.push_back(detail::copy(rank, peer * p + rank, Piece{peer, Buffer::input, rank, 1},
                                     Piece{rank, Buffer::output, peer, 1}));
        break;
      }
      case Operation::broadcast: {
        // The root only moves its own copy, a block in each round.
        const int before = position(shape, rank);
        const int block = before == 0 ? round : round - (before - 1);
        if (block < 0 || block >= p) break;
        const Piece to{rank, Buffer::output, block, 1};
        if (before == 0) {
          detail::add_copy(moves, shape, rank, block, Piece{rank, Buffer::input, block, 1}, to);
        } else {
          const Buffer carried = before == 1 ? Buffer::input : Buffer::output;
          moves.push_back(detail::copy(rank, block, Piece{left, carried, block, 1}, to));
        }
        break;
      }
      case Operation::reduce: {
        const int before = position(shape, rank);
        const int block = round - (before - 1);
        if (before == 0 || block < 0 || block >= p) break;
        const Piece carried =
            before == 1 ? Piece{left, Buffer::input, block, 1} : Piece{left, Buffer::scratch, block % 2, 1};
        const Piece result =
            rank == shape.root ? Piece{rank, Buffer::output, block, 1} : Piece{rank, Buffer::scratch, block % 2, 1};
        moves.push_back(join(rank, block, carried, result));
        break;
      }
      case Operation::inclusive_scan: {
        const int block = rank == 0 ? round : round - (rank - 1);
        if (block < 0 || block >= p) break;
        const Piece to{rank, Buffer::output, block, 1};
        if (rank == 0) {
          detail::add_copy(moves, shape, rank, block, Piece{rank, Buffer::input, block, 1}, to);
        } else {
          moves.push_back(join(rank, block, Piece{left, rank == 1 ? Buffer::input : Buffer::output, block, 1}, to));
        }
        break;
      }
      case Operation::exclusive_scan: pass_on(moves, shape, rank, round); break;
      default: break;
    }
    return moves;
  }

  static constexpr std::vector<int> partners(const Shape& shape, int rank, int round) {
    std::vector<int> result;
    const int p = shape.ranks;
    if (p == 1) return result;
    switch (shape.operation) {
      case Operation::all_to_all:
        if (round != 0) result.push_back(detail::around(p, rank, round));
        break;
      case Operation::broadcast:
      case Operation::reduce:
      case Operation::inclusive_scan: {
        // The successor in the chain takes block j from here in round `before + j`.
        const int before = position(shape, rank);
        if (before < p - 1 && round >= before && round < before + p) result.push_back(detail::around(p, rank, 1));
        break;
      }
      case Operation::exclusive_scan:
        if (rank > 0 && round >= rank - 1 && round < rank - 1 + p) result.push_back(rank - 1);
        break;
      default: result.push_back(detail::around(p, rank, 1));
    }
    return result;
  }

 private:
  /// Whether one rank has something to copy. A reduce must not look at whether it is in place.
  static constexpr bool alone(const Shape& shape) {
    if (shape.operation == Operation::exclusive_scan) return false;
    return !shape.in_place || shape.operation == Operation::reduce;
  }

  /// Whether prefixes wait in scratch: where they overwrite contributions that are still needed.
  static constexpr bool late(const Shape& shape) {
    return shape.operation == Operation::exclusive_scan && shape.in_place && shape.ranks > 2;
  }

  /// How many ranks come before a rank in the chain of a pipelined operation.
  static constexpr int position(const Shape& shape, int rank) {
    if (shape.operation == Operation::broadcast) return detail::around(shape.ranks, rank, -shape.root);
    if (shape.operation == Operation::reduce) return detail::around(shape.ranks, rank, -shape.root - 1);
    return rank;
  }

  /// The partial sum from the left, then the own contribution.
  static constexpr Move join(int rank, int block, Piece carried, Piece result) {
    Move move = detail::copy(rank, block, carried, result);
    move.from.push_back(Piece{rank, Buffer::input, block, 1});
    return move;
  }

  /// exclusive_scan: in round r + j rank r stores the prefix for rank r + 1 of block j there; in place, the own prefix
  /// moves from scratch to the output in the next round.
  static constexpr void pass_on(std::vector<Move>& moves, const Shape& shape, int rank, int round) {
    const int p = shape.ranks;
    const auto prefix = [&shape, p](int reader, int block) {
      return late(shape) && reader < p - 1 ? Piece{reader, Buffer::scratch, block % 3, 1}
                                           : Piece{reader, Buffer::output, block, 1};
    };
    const int block = round - rank;
    if (rank < p - 1 && block >= 0 && block < p) {
      const Piece own{rank, Buffer::input, block, 1};
      if (rank == 0) {
        moves.push_back(detail::copy(rank, block, own, prefix(1, block)));
      } else {
        moves.push_back(join(rank, block, prefix(rank, block), prefix(rank + 1, block)));
      }
    }
    if (late(shape) && rank > 0 && rank < p - 1 && block >= 1 && block <= p) {
      moves.push_back(
          detail::copy(rank, block - 1, prefix(rank, block - 1), Piece{rank, Buffer::output, block - 1, 1}));
    }
  }
};

static_assert(Generator<Ring>);

}  // namespace meshwise
