// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "meshwise/schedule/generator.hpp"

namespace meshwise {

/// One round in which every rank reads all it needs where it lies and works for itself only: the fewest steps between
/// the last rank's arrival and everybody's result, for messages so short that nothing else counts.
///
/// all_reduce: every rank combines all p blocks of all ranks. reduce: the root does. inclusive_scan, exclusive_scan:
/// rank r combines ranks 0 to r, or to r - 1. all_gather: every rank pulls p - 1 blocks. broadcast: every rank pulls
/// all of the root's vector. Whole vectors move as one piece. In place an all_reduce of more than one rank and a scan
/// of more than two would overwrite contributions that others still read: not supported.
///
/// Rounds: 1. Cost per rank, in blocks of a p-th of the vector, read from others: all_reduce p(p - 1); reduce p(p - 1),
/// the root only; inclusive_scan and exclusive_scan p r of rank r; all_gather p - 1; broadcast p.
/// No scratch. Order: a left fold over the ranks from 0 on in one move, the same on all ranks.
struct OneShot {
  static constexpr const char* name = "one_shot";

  static constexpr bool supports(const Shape& shape) {
    if (!valid(shape)) return false;
    switch (shape.operation) {
      case Operation::all_reduce: return !shape.in_place || shape.ranks == 1;
      case Operation::inclusive_scan:
      case Operation::exclusive_scan: return !shape.in_place || shape.ranks <= 2;
      case Operation::reduce:
      case Operation::all_gather:
      case Operation::broadcast: return true;
      default: return false;
    }
  }

  static constexpr int rounds(const Shape&) { return 1; }

  static constexpr int scratch_slots(const Shape&) { return 0; }

  static constexpr std::vector<Move> by(const Shape& shape, int rank, int) {
    std::vector<Move> moves;
    const int p = shape.ranks;
    switch (shape.operation) {
      case Operation::all_gather:
        for (int k = 0; k < p; ++k) {
          const int peer = (rank + k) % p;
          detail::add_copy(moves, shape, rank, peer, Piece{peer, Buffer::input, 0, 1},
                           Piece{rank, Buffer::output, peer, 1});
        }
        break;
      case Operation::broadcast:
        detail::add_copy(moves, shape, rank, 0, Piece{shape.root, Buffer::input, 0, p},
                         Piece{rank, Buffer::output, 0, p});
        break;
      case Operation::reduce:
        if (rank == shape.root) fold(moves, shape, rank, p);
        break;
      default:
        // Alone in its output and in place, a contribution already is where it belongs.
        if (!(shape.in_place && contributors(shape, rank) == 1 && shape.operation != Operation::exclusive_scan)) {
          fold(moves, shape, rank, contributors(shape, rank));
        }
    }
    return moves;
  }

  static constexpr std::vector<int> partners(const Shape& shape, int rank, int) {
    const int p = shape.ranks;
    std::vector<int> result;
    switch (shape.operation) {
      case Operation::broadcast:
        if (rank != shape.root) return result;
        break;
      case Operation::reduce:
        if (rank != shape.root) result.push_back(shape.root);
        return result;
      case Operation::inclusive_scan:
      case Operation::exclusive_scan:
        for (int reader = rank + 1; reader < p; ++reader) result.push_back(reader);
        return result;
      default: break;
    }
    return detail::others(p, rank);
  }

 private:
  /// All blocks of ranks 0 to `number` into the output.
  static constexpr void fold(std::vector<Move>& moves, const Shape& shape, int rank, int number) {
    if (number == 0) return;
    Move move;
    move.by = rank;
    for (int peer = 0; peer < number; ++peer) move.from.push_back(Piece{peer, Buffer::input, 0, shape.ranks});
    move.to.push_back(Piece{rank, Buffer::output, 0, shape.ranks});
    moves.push_back(std::move(move));
  }
};

static_assert(Generator<OneShot>);

}  // namespace meshwise
