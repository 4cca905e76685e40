// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "meshwise/schedule/generator.hpp"

namespace meshwise {

/// Rings along the dims of a torus, one dim after the other: every rank talks to its neighbours on the torus only, and
/// pulls from the one before it.
///
/// `dims`: the extents, the last one varies fastest over the ranks; their product must be the number of ranks. Dims of
/// extent 1 cost nothing. No dims are those of one rank.
/// reduce_scatter: in each dim from the first to the last the range of blocks that is left is cut by the coordinate in
/// that dim, and the cuts are summed around the ring, p_i - 1 rounds; the range shrinks to a p_i-th and stays
/// contiguous. all_gather: the same backwards, from the last dim to the first. all_reduce: both. One rank copies
/// locally.
///
/// Rounds: reduce_scatter and all_gather sum of (p_i - 1), all_reduce twice that. Blocks read per rank: p - 1,
/// all_reduce 2(p - 1), each round's as one piece. Order: in each dim a left fold that begins behind the block's
/// coordinate, which is not rank order. Scratch: reduce_scatter two cuts of the first dim, one if its extent is 2; if
/// it is the only dim, two slots from extent 4 on and extent - 2 below; otherwise none.
///
/// Source: the bucket algorithm on meshes, Barnett, Littlefield, Payne and van de Geijn, Global combine on mesh
/// architectures with wormhole routing, 1993.
struct Torus {
  static constexpr const char* name = "torus";

  std::vector<int> dims;

  /// Such as "torus{4, 2}".
  std::string description() const { return name + detail::list_text(dims); }

  constexpr bool supports(const Shape& shape) const {
    if (!valid(shape) || (shape.operation != Operation::all_reduce && shape.operation != Operation::reduce_scatter &&
                          shape.operation != Operation::all_gather)) {
      return false;
    }
    std::int64_t product = 1;
    for (const int extent : dims) {
      if (extent < 1) return false;
      product *= extent;
      if (product > shape.ranks) return false;
    }
    return product == shape.ranks;
  }

  constexpr int rounds(const Shape& shape) const {
    if (shape.ranks == 1) return shape.in_place ? 0 : 1;
    return shape.operation == Operation::all_reduce ? 2 * once() : once();
  }

  constexpr int scratch_slots(const Shape& shape) const {
    if (shape.operation != Operation::reduce_scatter || shape.ranks == 1) return 0;
    const Ring first = ring(shape, 0);
    const int sets = first.extent - (first.cut == 1 ? 2 : 1);
    return (sets < 2 ? sets : 2) * first.cut;
  }

  constexpr std::vector<Move> by(const Shape& shape, int rank, int round) const {
    std::vector<Move> moves;
    if (shape.ranks == 1) {
      detail::add_copy(moves, shape, 0, 0, Piece{0, Buffer::input, 0, 1}, Piece{0, Buffer::output, 0, 1});
      return moves;
    }
    const bool gathers = shape.operation == Operation::all_gather;
    if (!gathers && round < once()) {
      moves.push_back(reduce(shape, rank, round));
      return moves;
    }
    const Ring along = ring(shape, gathers ? once() - 1 - round : 2 * once() - 1 - round);
    const int coordinate = rank / along.cut % along.extent;
    // The rounds are counted backwards: the last one of the ring is the first one here.
    const int done = along.extent - 2 - along.round;
    const int left = neighbour(along, rank, -1);
    const int block = along.base(rank) + detail::around(along.extent, coordinate, -1 - done) * along.cut;
    Piece from{left, Buffer::output, block, along.cut};
    if (gathers && round == 0) from = Piece{left, Buffer::input, 0, 1};
    moves.push_back(detail::copy(rank, block, from, Piece{rank, Buffer::output, block, along.cut}));
    if (gathers && round == 0) {
      detail::add_copy(moves, shape, rank, rank, Piece{rank, Buffer::input, 0, 1},
                       Piece{rank, Buffer::output, rank, 1});
    }
    return moves;
  }

  constexpr std::vector<int> partners(const Shape& shape, int rank, int round) const {
    std::vector<int> result;
    if (shape.ranks > 1) result.push_back(neighbour(ring(shape, position(shape, round)), rank, 1));
    return result;
  }

  /// The rest of the ring, in which all rounds move the same cuts between the same neighbours.
  constexpr int alike(const Shape& shape, int round) const {
    if (shape.ranks == 1) return 1;
    if (shape.operation == Operation::all_gather && round == 0 && !shape.in_place) return 1;  // and a local copy
    const Ring along = ring(shape, position(shape, round));
    const bool forwards = shape.operation != Operation::all_gather && round < once();
    return forwards ? along.extent - 1 - along.round : along.round + 1;
  }

 private:
  /// Where a round of the reduce-scatter stands: the dim, the round of its ring, and what a cut is.
  struct Ring {
    std::size_t dim = 0;
    int round = 0;
    int extent = 1;
    int cut = 1;  ///< blocks, and also the distance of neighbours in ranks

    /// The first block of the range that the ring of a rank works on.
    constexpr int base(int rank) const { return rank - rank % (cut * extent); }
  };

  /// The rounds of a reduce-scatter.
  constexpr int once() const {
    int sum = 0;
    for (const int extent : dims) sum += extent - 1;
    return sum;
  }

  constexpr Ring ring(const Shape& shape, int round) const {
    Ring result;
    result.cut = shape.ranks;
    result.round = round;
    for (result.dim = 0;; ++result.dim) {
      result.extent = dims[result.dim];
      result.cut /= result.extent;
      if (result.round < result.extent - 1) return result;
      result.round -= result.extent - 1;
    }
  }

  /// The round of the reduce-scatter with the same ring and the same cuts.
  constexpr int position(const Shape& shape, int round) const {
    if (shape.operation == Operation::all_gather) return once() - 1 - round;
    return round < once() ? round : 2 * once() - 1 - round;
  }

  static constexpr int neighbour(const Ring& along, int rank, int distance) {
    const int coordinate = rank / along.cut % along.extent;
    return rank + (detail::around(along.extent, coordinate, distance) - coordinate) * along.cut;
  }

  /// A round of the reduce-scatter: the partial sum of a cut comes from the left and the own contribution joins it.
  constexpr Move reduce(const Shape& shape, int rank, int round) const {
    const Ring along = ring(shape, round);
    const int coordinate = rank / along.cut % along.extent;
    const int left = neighbour(along, rank, -1);
    const int block = along.base(rank) + detail::around(along.extent, coordinate, -2 - along.round) * along.cut;
    const bool first = round == along.round;  // nothing has been summed in an earlier dim
    Piece own{rank, Buffer::input, block, along.cut};
    Piece carried{left, Buffer::input, block, along.cut};
    Piece result{rank, Buffer::output, block, along.cut};
    if (shape.operation == Operation::all_reduce) {
      if (!first) own.buffer = Buffer::output;
      if (round > 0) carried.buffer = Buffer::output;
    } else {
      // The first ring carries its sums through two sets of slots in turn, so that the last one ends in set 0 (or
      // in the output, if there are no other dims). The later rings sum in place in set 0.
      const Ring start = ring(shape, 0);
      const int base = along.base(rank) - along.base(rank) % start.cut;
      const int sets = start.cut == 1 ? along.extent - 1 : along.extent;
      const auto scratch = [&](int owner, int set) {
        return Piece{owner, Buffer::scratch, set * start.cut + (first ? 0 : block - base), along.cut};
      };
      if (!first) own = scratch(rank, 0);
      if (round > 0) carried = scratch(left, first ? (sets - 1 - along.round) % 2 : 0);
      result = scratch(rank, first ? (sets - 2 - along.round) % 2 : 0);
      if (round == once() - 1) result = Piece{rank, Buffer::output, 0, 1};
    }
    Move move = detail::copy(rank, block, carried, result);
    move.from.push_back(own);
    return move;
  }
};

static_assert(Generator<Torus>);

}  // namespace meshwise
