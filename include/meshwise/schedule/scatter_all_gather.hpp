// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <vector>

#include "meshwise/core/detail/sorted.hpp"
#include "meshwise/schedule/generator.hpp"

namespace meshwise {

/// broadcast as scatter and all-gather, reduce as reduce-scatter and gather: for vectors too long for a tree.
///
/// Ranks are counted from the root and rank v is in charge of block v. Its share is the blocks of its sub-tree in the
/// binomial tree: from its own on, as many as the weight of the lowest bit of v, as far as there are any.
/// broadcast: shares descend the binomial tree straight to their final place; then in circulant rounds rank v pulls
/// from v + s what it lacks of blocks v + s to v + s' - 1, for s = 1, ..., ceil(p / 4), ceil(p / 2) and s' the next
/// one. What came along with its share is not pulled again. reduce: the circulant rounds backwards, adding, then shares
/// of sums ascend the tree. One rank copies locally.
///
/// Rounds: 2 ceil(lg p), of any p. Blocks: broadcast p at every rank but the root, the least possible, out of which the
/// root serves up to 2(p - 1); reduce p - 1 and what the rank gathers, 2(p - 1) at the root. Order: block v is folded
/// along the circulant, which is not rank order. Scratch: reduce floor(p / 2) slots; broadcast none.
///
/// Source: van de Geijn, On global combine operations, 1994, for the composition; Traff, Optimal, non-pipelined
/// reduce-scatter and allreduce algorithms, 2024, for the circulant rounds.
struct ScatterAllGather {
  static constexpr const char* name = "scatter_all_gather";

  static constexpr bool supports(const Shape& shape) {
    return valid(shape) && (shape.operation == Operation::broadcast || shape.operation == Operation::reduce);
  }

  static constexpr int rounds(const Shape& shape) {
    if (shape.ranks > 1) return 2 * levels(shape.ranks);
    return shape.operation == Operation::broadcast && shape.in_place ? 0 : 1;
  }

  static constexpr int scratch_slots(const Shape& shape) {
    return shape.operation == Operation::reduce ? shape.ranks / 2 : 0;
  }

  static constexpr std::vector<Move> by(const Shape& shape, int rank, int round) {
    std::vector<Move> moves;
    const int p = shape.ranks;
    const int place = detail::around(p, rank, -shape.root);
    const int phase = levels(p);
    if (shape.operation == Operation::broadcast) {
      if (place == 0) {
        if (round > 0) return moves;
        detail::add_copy(moves, shape, rank, 0, Piece{rank, Buffer::input, 0, p}, Piece{rank, Buffer::output, 0, p});
      } else if (round < phase) {
        // The edge to the parent has the weight of the lowest bit.
        const int bit = place & -place;
        if (bit == 1 << (phase - 1 - round)) pull(moves, shape, place, place - bit, place, share(p, place));
      } else {
        const int next = skip(p, 2 * phase - 1 - round);
        const int closest = detail::larger(skip(p, 2 * phase - round), share(p, place));
        const int source = (place + skip(p, 2 * phase - round)) % p;
        if (closest < next) wrap(moves, shape, place, source, place + closest, next - closest);
      }
      return moves;
    }
    if (p == 1) {
      moves.push_back(detail::copy(0, 0, Piece{0, Buffer::input, 0, 1}, Piece{0, Buffer::output, 0, 1}));
    } else if (round < phase) {
      combine(moves, shape, place, round);
    } else {
      const int bit = 1 << (round - phase);
      const int child = place + bit;
      if (place % (2 * bit) == 0 && child < p) pull(moves, shape, place, child, child, share(p, child));
    }
    return moves;
  }

  static constexpr std::vector<int> partners(const Shape& shape, int rank, int round) {
    std::vector<int> result;
    const int p = shape.ranks;
    if (p == 1) return result;
    const int place = detail::around(p, rank, -shape.root);
    const int phase = levels(p);
    int partner = -1;
    if (shape.operation == Operation::broadcast) {
      if (round < phase) {
        const int bit = 1 << (phase - 1 - round);
        if (place % (2 * bit) == 0 && place + bit < p) partner = place + bit;
      } else {
        const int reader = (place + p - skip(p, 2 * phase - round)) % p;
        // A share that reaches as far as the round leaves nothing to pull.
        if (reader != 0 && share(p, reader) < skip(p, 2 * phase - 1 - round)) partner = reader;
      }
    } else if (round < phase) {
      partner = (place + skip(p, round + 1)) % p;
    } else if (place != 0 && (place & -place) == 1 << (round - phase)) {
      partner = place - (place & -place);
    }
    if (partner >= 0) result.push_back(absolute(shape, partner));
    return result;
  }

 private:
  /// ceil(lg p).
  static constexpr int levels(int p) { return static_cast<int>(std::bit_width(static_cast<unsigned>(p - 1))); }

  /// p halved k times, rounded up: p, ceil(p / 2), ..., 1.
  static constexpr int skip(int p, int k) {
    for (; k > 0; --k) p -= p / 2;
    return p;
  }

  static constexpr int absolute(const Shape& shape, int place) { return (place + shape.root) % shape.ranks; }

  /// How many blocks, from its own on, a place other than 0 handles in the binomial tree.
  static constexpr int share(int p, int place) { return detail::smaller(place & -place, p - place); }

  /// Where a place holds blocks `first` to `first` + `count` - 1, which do not wrap.
  static constexpr Piece holding(const Shape& shape, int place, int first, int count) {
    const int rank = absolute(shape, place);
    if (shape.operation == Operation::broadcast) {
      return Piece{rank, place == 0 ? Buffer::input : Buffer::output, first, count};
    }
    if (place == 0) return Piece{rank, Buffer::output, first, count};
    return Piece{rank, Buffer::scratch, first - place + (first < place ? shape.ranks : 0), count};
  }

  static constexpr void pull(std::vector<Move>& moves, const Shape& shape, int place, int from, int first, int count) {
    Piece to = holding(shape, place, first, count);
    if (shape.operation == Operation::broadcast) to.buffer = Buffer::output;
    moves.push_back(detail::copy(absolute(shape, place), first, holding(shape, from, first, count), to));
  }

  /// `pull` of blocks counted modulo p.
  static constexpr void wrap(std::vector<Move>& moves, const Shape& shape, int place, int from, int first, int count) {
    for (int done = 0; done < count;) {
      const int block = (first + done) % shape.ranks;
      const int run = detail::smaller(count - done, shape.ranks - block);
      pull(moves, shape, place, from, block, run);
      done += run;
    }
  }

  /// A round of the reduce-scatter: the partial sums of `place` for the blocks from its own on, and those of the
  /// place a skip before. Sums of more than one contribution lie in scratch, those of the root in its output.
  static constexpr void combine(std::vector<Move>& moves, const Shape& shape, int place, int round) {
    const int p = shape.ranks;
    const int distance = skip(p, round + 1);
    const int count = skip(p, round) - distance;
    const int source = (place + p - distance) % p;
    const int summed = round == 0 ? 0 : p / 2;  // from how far on the source still has its own contribution only
    for (int done = 0; done < count;) {
      const int block = (place + done) % p;
      int run = detail::smaller(count - done, p - block);
      const bool plain = done + distance >= summed;
      if (!plain) run = detail::smaller(run, summed - distance - done);
      Move move;
      move.by = absolute(shape, place);
      move.block = block;
      move.from.push_back(plain ? Piece{absolute(shape, source), Buffer::input, block, run}
                                : holding(shape, source, block, run));
      move.from.push_back(round == 0 ? Piece{move.by, Buffer::input, block, run} : holding(shape, place, block, run));
      move.to.push_back(holding(shape, place, block, run));
      moves.push_back(std::move(move));
      done += run;
    }
  }
};

static_assert(Generator<ScatterAllGather>);

}  // namespace meshwise
