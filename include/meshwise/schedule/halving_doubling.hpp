// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "meshwise/schedule/detail/folding.hpp"
#include "meshwise/schedule/generator.hpp"

namespace meshwise {

/// Partners swap halves of what they still hold until each worker holds a part of the result; then the way back.
///
/// With p = 2^m + e ranks, e of them fold with a neighbour (a round, p blocks for that neighbour) and 2^m work.
/// all_reduce: m rounds of halving, m of doubling, the nearest partner first: the largest pieces travel the shortest
/// way, and contributions stand in rank order. The folded ranks fetch the result. 2 m rounds and 2(p - 1) blocks read
/// per rank for a power of two; otherwise 2 m + 2 rounds, and p more blocks for a worker that took over a neighbour.
/// reduce: the same halving, then a binomial gather to the root, which always works: 2 m rounds (2 m + 1), 2(p - 1)
/// blocks at the root; rank order.
/// reduce_scatter: the farthest partner first, so that what a worker keeps is contiguous and ends as its own block;
/// that is not rank order (partners combine low with high). m rounds (m + 2), p - 1 blocks (p more as above).
/// Where e > 0 slots divide unevenly, which is a block more or less in each step.
///
/// Partial results lie in the output where a rank has one, otherwise in scratch: none for all_reduce; half of the
/// slots for reduce, and for reduce_scatter on more than 2 ranks; all p slots for both if ranks are folded.
///
/// Source: Rabenseifner, Optimization of collective reduction operations, 2004; Thakur, Rabenseifner and Gropp, 2005.
struct HalvingDoubling {
  static constexpr const char* name = "halving_doubling";

  static constexpr bool supports(const Shape& shape) {
    if (!valid(shape)) return false;
    return shape.operation == Operation::all_reduce || shape.operation == Operation::reduce_scatter ||
           shape.operation == Operation::reduce;
  }

  static constexpr int rounds(const Shape& shape) {
    if (shape.ranks == 1) return shape.in_place && shape.operation != Operation::reduce ? 0 : 1;
    const detail::Folding folding(shape.ranks);
    const int steps = folding.steps();
    switch (shape.operation) {
      case Operation::all_reduce: return 2 * steps + 2 * folding.rounds();
      case Operation::reduce: return 2 * steps + folding.rounds();
      default: return steps + 2 * folding.rounds();
    }
  }

  static constexpr int scratch_slots(const Shape& shape) {
    if (shape.ranks == 1 || shape.operation == Operation::all_reduce) return 0;
    if (detail::Folding(shape.ranks).rounds() == 1) return shape.ranks;
    return shape.operation == Operation::reduce_scatter && shape.ranks == 2 ? 0 : shape.ranks / 2;
  }

  static constexpr std::vector<Move> by(const Shape& shape, int rank, int round) {
    std::vector<Move> moves;
    const int p = shape.ranks;
    if (p == 1) {
      // A reduce has the same moves in and out of place: only the root knows which it is.
      const Piece from{0, Buffer::input, 0, 1};
      const Piece to{0, Buffer::output, 0, 1};
      if (shape.operation == Operation::reduce) {
        moves.push_back(detail::copy(0, 0, from, to));
      } else {
        detail::add_copy(moves, shape, 0, 0, from, to);
      }
      return moves;
    }
    const detail::Folding folding(p, shape.root);
    const int steps = folding.steps();
    const int step = round - folding.rounds();
    if (step < 0) {
      if (folding.paired(rank) && folding.works(rank)) {
        const int mate = folding.mate(rank);
        moves.push_back(join(rank, Piece{rank < mate ? rank : mate, Buffer::input, 0, p},
                             Piece{rank < mate ? mate : rank, Buffer::input, 0, p}, held(shape, folding, rank, 0, p)));
      }
    } else if (step < steps) {
      if (folding.works(rank)) halve(moves, shape, folding, rank, step);
    } else if (!folding.works(rank)) {
      if (round == rounds(shape) - 1 && shape.operation != Operation::reduce) fetch(moves, shape, folding, rank);
    } else if (step < 2 * steps && shape.operation != Operation::reduce_scatter) {
      const int level = 2 * steps - 1 - step;
      if (!doubles(shape, folding, rank, level)) return moves;
      const int other = folding.worker(rank) ^ (1 << level);
      const Slots got = part(shape, folding, other, level + 1);
      moves.push_back(detail::copy(rank, got.begin, held(shape, folding, folding.rank(other), got.begin, got.count),
                                   held(shape, folding, rank, got.begin, got.count)));
    }
    return moves;
  }

  static constexpr std::vector<int> partners(const Shape& shape, int rank, int round) {
    std::vector<int> result;
    if (shape.ranks == 1) return result;
    const detail::Folding folding(shape.ranks, shape.root);
    const int steps = folding.steps();
    const int step = round - folding.rounds();
    const bool works = folding.works(rank);
    if (step < 0) {
      if (!works) result.push_back(folding.mate(rank));
    } else if (step < steps) {
      if (works) result.push_back(other_half(shape, folding, rank, step));
    } else if (step < 2 * steps && shape.operation != Operation::reduce_scatter) {
      const int level = 2 * steps - 1 - step;
      if (!works) return result;
      const int peer = folding.rank(folding.worker(rank) ^ (1 << level));
      if (doubles(shape, folding, peer, level)) result.push_back(peer);
    } else if (works && folding.paired(rank)) {
      result.push_back(folding.mate(rank));
    }
    return result;
  }

 private:
  struct Slots {
    int begin = 0;
    int count = 0;
  };

  static constexpr Move join(int by, Piece low, Piece high, Piece to) {
    Move move = detail::copy(by, low.slot, low, to);
    move.from.push_back(high);
    return move;
  }

  /// The slots that a worker still holds after `done` halvings: those of the ranks that `width` workers stand for.
  /// With the nearest partner first bit k of its number chooses the half in step k; with the farthest first its own
  /// slots are always among them.
  static constexpr Slots part(const Shape& shape, const detail::Folding& folding, int worker, int done) {
    const int width = folding.size() >> done;
    int begin = worker & ~(width - 1);
    if (shape.operation != Operation::reduce_scatter) {
      begin = 0;
      for (int k = 0; k < done; ++k) begin += (worker >> k & 1) * (folding.size() >> (k + 1));
    }
    return Slots{folding.first(begin), folding.first(begin + width) - folding.first(begin)};
  }

  static constexpr int other_half(const Shape& shape, const detail::Folding& folding, int rank, int step) {
    const int bit = shape.operation == Operation::reduce_scatter ? folding.size() >> (step + 1) : 1 << step;
    return folding.rank(folding.worker(rank) ^ bit);
  }

  /// Where a worker has its partial results of some blocks. Scratch has room for what is left after the first halving,
  /// for all blocks if there is a folding round before.
  static constexpr Piece held(const Shape& shape, const detail::Folding& folding, int rank, int block, int count) {
    if (shape.operation == Operation::all_reduce || (shape.operation == Operation::reduce && rank == shape.root)) {
      return Piece{rank, Buffer::output, block, count};
    }
    if (folding.rounds() == 1) return Piece{rank, Buffer::scratch, block, count};
    const int base = part(shape, folding, folding.worker(rank), 1).begin;
    return Piece{rank, Buffer::scratch, block - base, count};
  }

  static constexpr void halve(std::vector<Move>& moves, const Shape& shape, const detail::Folding& folding, int rank,
                              int step) {
    const int peer = other_half(shape, folding, rank, step);
    const int low = rank < peer ? rank : peer;
    const int high = rank < peer ? peer : rank;
    const auto source = [&](int from, int block, int count) {
      if (step == 0 && !folding.paired(from)) return Piece{from, Buffer::input, block, count};
      return held(shape, folding, from, block, count);
    };
    const auto [begin, count] = part(shape, folding, folding.worker(rank), step + 1);
    if (shape.operation == Operation::reduce_scatter && step == folding.steps() - 1) {
      for (int block = begin; block < begin + count; ++block) {
        const Piece to = block == rank ? Piece{rank, Buffer::output, 0, 1} : held(shape, folding, rank, block, 1);
        moves.push_back(join(rank, source(low, block, 1), source(high, block, 1), to));
        moves.back().block = block;
      }
    } else {
      moves.push_back(
          join(rank, source(low, begin, count), source(high, begin, count), held(shape, folding, rank, begin, count)));
      moves.back().block = begin;
    }
  }

  /// Whether a worker fetches its partner's part in the doubling of a level: all do in an all_reduce; in a reduce those
  /// that are left on the way to the root.
  static constexpr bool doubles(const Shape& shape, const detail::Folding& folding, int rank, int level) {
    if (shape.operation == Operation::all_reduce) return true;
    return (folding.worker(rank) >> level) == (folding.worker(shape.root) >> level);
  }

  /// What a folded rank gets in the end.
  static constexpr void fetch(std::vector<Move>& moves, const Shape& shape, const detail::Folding& folding, int rank) {
    const int mate = folding.mate(rank);
    const bool all = shape.operation == Operation::all_reduce;
    const int block = all ? 0 : rank;
    const int count = all ? shape.ranks : 1;
    moves.push_back(
        detail::copy(rank, block, held(shape, folding, mate, block, count), Piece{rank, Buffer::output, 0, count}));
  }
};

static_assert(Generator<HalvingDoubling>);

}  // namespace meshwise
