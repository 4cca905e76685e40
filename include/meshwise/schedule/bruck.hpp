// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <vector>

#include "meshwise/schedule/detail/cyclic.hpp"
#include "meshwise/schedule/detail/logarithm.hpp"
#include "meshwise/schedule/generator.hpp"

namespace meshwise {

/// Messages over distances 1, 2, 4, ... that carry blocks of several ranks: few rounds for every number of ranks.
///
/// all_gather: in round k rank r fetches the min(2^k, p - 2^k) blocks that rank r + 2^k has gathered; ceil(lg p)
/// rounds, p - 1 blocks read per rank. Blocks go straight to their slots, so nothing is rotated in the end.
/// all_to_all: a block has d = destination - source (mod p) to go, and in round k moves on by 2^k if bit k of d is
/// set; ceil(lg p) rounds, and as many blocks read per rank as there are set bits in 1, ..., p - 1: (p / 2) lg p for a
/// power of two. All moves of a round have the same two ends, hence travel as one message.
///
/// Scratch, all_to_all only: a block that is under way waits by its distance. Of 1, ..., p - 1 those with two bits or
/// more have a slot; those with three or more a second one, since a rank passes on one block of a distance while it
/// takes the next. Nothing is combined.
///
/// Source: Bruck, Ho, Kipnis, Upfal and Weathersby, Efficient algorithms for all-to-all communications, 1997.
struct Bruck {
  static constexpr const char* name = "bruck";

  static constexpr bool supports(const Shape& shape) {
    return valid(shape) && (shape.operation == Operation::all_gather || shape.operation == Operation::all_to_all);
  }

  static constexpr int rounds(const Shape& shape) {
    if (shape.ranks == 1) return shape.in_place ? 0 : 1;
    return detail::ceil_lg(shape.ranks);
  }

  static constexpr int scratch_slots(const Shape& shape) {
    if (shape.operation == Operation::all_gather || shape.ranks < 4) return 0;
    return twofold(shape.ranks) + threefold(shape.ranks);
  }

  static constexpr std::vector<Move> by(const Shape& shape, int rank, int round) {
    std::vector<Move> moves;
    const int p = shape.ranks;
    const int distance = 1 << round;
    if (shape.operation == Operation::all_gather) {
      if (round == 0) {
        detail::add_copy(moves, shape, rank, rank, Piece{rank, Buffer::input, 0, 1},
                         Piece{rank, Buffer::output, rank, 1});
      }
      if (p == 1) return moves;
      const int peer = detail::around(p, rank, distance);
      detail::cyclic_runs(p, peer, distance < p - distance ? distance : p - distance, [&](int slot, int, int length) {
        const Piece from = round == 0 ? Piece{peer, Buffer::input, 0, 1} : Piece{peer, Buffer::output, slot, length};
        moves.push_back(detail::copy(rank, slot, from, Piece{rank, Buffer::output, slot, length}));
      });
      return moves;
    }
    if (round == 0) {
      moves.push_back(detail::copy(rank, rank * p + rank, Piece{rank, Buffer::input, rank, 1},
                                   Piece{rank, Buffer::output, rank, 1}));
    }
    // p - 1 has at most 16 bits, so nothing here overflows.
    for (int base = distance; base < p; base += 2 * distance) {
      for (int way = base; way < base + distance && way < p; ++way) {
        const int gone = way & (distance - 1);
        const int source = detail::around(p, rank, -(gone + distance));
        const int destination = (source + way) % p;
        moves.push_back(detail::copy(rank, source * p + destination, at(p, source, way, gone),
                                     at(p, source, way, gone + distance)));
      }
    }
    return moves;
  }

  static constexpr std::vector<int> partners(const Shape& shape, int rank, int round) {
    const int p = shape.ranks;
    if (p == 1) return {};
    const bool gathers = shape.operation == Operation::all_gather;
    return {detail::around(p, rank, gathers ? -(1 << round) : 1 << round)};
  }

 private:
  /// How many of 1, ..., way - 1 have two bits or more: the others are powers of two. way > 1.
  static constexpr int twofold(int way) { return way - 2 - detail::floor_lg(way - 1); }

  /// How many of 1, ..., way - 1 have three bits or more. Of those with two, (top over 2) lie below the highest power
  /// of two, and one more for each place that the second bit may take. way > 1.
  static constexpr int threefold(int way) {
    const int top = detail::floor_lg(way - 1);
    const int rest = way - 1 - (1 << top);
    return twofold(way) - top * (top - 1) / 2 - (rest == 0 ? 0 : detail::floor_lg(rest) + 1);
  }

  /// Where a block of `source` with `way` to go is when it has `gone` so far.
  static constexpr Piece at(int p, int source, int way, int gone) {
    const int rank = (source + gone) % p;
    if (gone == 0) return Piece{rank, Buffer::input, (source + way) % p, 1};
    if (gone == way) return Piece{rank, Buffer::output, source, 1};
    const int left = std::popcount(static_cast<unsigned>(way ^ gone));
    if (left % 2 == 1) return Piece{rank, Buffer::scratch, twofold(way), 1};
    return Piece{rank, Buffer::scratch, twofold(p) + threefold(way), 1};
  }
};

static_assert(Generator<Bruck>);

}  // namespace meshwise
