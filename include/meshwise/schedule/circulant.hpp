// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "meshwise/schedule/detail/cyclic.hpp"
#include "meshwise/schedule/detail/logarithm.hpp"
#include "meshwise/schedule/generator.hpp"

namespace meshwise {

/// Optimal rounds and optimal volume for every number of ranks: neighbours at the halves of p, rounded up.
///
/// With q = ceil(lg p) and skips s_k = ceil(p / 2^k), s_0 = p to s_q = 1, rank r has p partial results R[i], R[i] of
/// block r + i (mod p). reduce_scatter: in step k rank r adds R[s_k + j] of rank r - s_k to its own R[j], for all j
/// from 0 to s_(k-1) - s_k; the result is R[0]. all_gather: the same steps backwards, rank r fetches the first
/// s_(k-1) - s_k blocks of rank r + s_k. all_reduce: one after the other.
///
/// q rounds (all_reduce 2 q) and p - 1 blocks read per rank (all_reduce 2(p - 1)), for every p. Ranges are cyclic, so
/// a step is one move or two (on an odd number of ranks one partial result is still the input in step 2, which makes
/// three). Scratch: floor(p / 2) slots for reduce_scatter on more than 2 ranks, else none. Order: the trees of blocks
/// differ by a rotation, hence are not in rank order; all ranks have the same bits.
///
/// Source: Traff, Optimal, non-pipelined reduce-scatter and allreduce algorithms, arXiv 2410.14234.
struct Circulant {
  static constexpr const char* name = "circulant";

  static constexpr bool supports(const Shape& shape) {
    if (!valid(shape)) return false;
    return shape.operation == Operation::all_reduce || shape.operation == Operation::reduce_scatter ||
           shape.operation == Operation::all_gather;
  }

  static constexpr int rounds(const Shape& shape) {
    if (shape.ranks == 1) return shape.in_place ? 0 : 1;
    return (shape.operation == Operation::all_reduce ? 2 : 1) * detail::ceil_lg(shape.ranks);
  }

  static constexpr int scratch_slots(const Shape& shape) {
    return shape.operation == Operation::reduce_scatter && shape.ranks > 2 ? shape.ranks / 2 : 0;
  }

  static constexpr std::vector<Move> by(const Shape& shape, int rank, int round) {
    std::vector<Move> moves;
    const int p = shape.ranks;
    const int steps = detail::ceil_lg(p);
    if (p == 1 || (round == 0 && shape.operation == Operation::all_gather)) {
      const int slot = shape.operation == Operation::all_gather ? rank : 0;
      detail::add_copy(moves, shape, rank, rank, Piece{rank, Buffer::input, 0, 1},
                       Piece{rank, Buffer::output, slot, 1});
      if (p == 1) return moves;
    }
    if (shape.operation == Operation::all_gather) {
      spread(moves, shape, rank, steps - round);
    } else if (round < steps) {
      collect(moves, shape, rank, round + 1);
    } else {
      spread(moves, shape, rank, 2 * steps - round);
    }
    return moves;
  }

  static constexpr std::vector<int> partners(const Shape& shape, int rank, int round) {
    const int p = shape.ranks;
    const int steps = detail::ceil_lg(p);
    if (p == 1) return {};
    if (shape.operation == Operation::all_gather) return {detail::around(p, rank, -skip(p, steps - round))};
    if (round < steps) return {detail::around(p, rank, skip(p, round + 1))};
    return {detail::around(p, rank, -skip(p, 2 * steps - round))};
  }

 private:
  static constexpr int skip(int p, int step) { return (p >> step) + ((p & ((1 << step) - 1)) != 0 ? 1 : 0); }

  /// Step k of the reduction.
  static constexpr void collect(std::vector<Move>& moves, const Shape& shape, int rank, int k) {
    const int p = shape.ranks;
    const int distance = skip(p, k);
    const int peer = detail::around(p, rank, -distance);
    const int count = skip(p, k - 1) - distance;
    // Step 1 makes R[0] to R[p / 2 - 1] and no later step any other, so what lies beyond is the input.
    const int made = k == 1 ? 0 : p / 2;
    const auto partial = [&](int owner, int i, int length) {
      if (i >= made) return Piece{owner, Buffer::input, (owner + i) % p, length};
      return stored(shape, owner, i, length);
    };
    const auto add = [&](int j, int length) {
      const bool last = shape.operation == Operation::reduce_scatter && distance == 1;
      const Piece to = last ? Piece{rank, Buffer::output, 0, 1} : stored(shape, rank, j, length);
      Move move = detail::copy(rank, (rank + j) % p, partial(peer, distance + j, length), to);
      move.from.push_back(partial(rank, j, length));
      moves.push_back(move);
    };
    detail::cyclic_runs(p, rank, count, [&](int, int j, int length) {
      const int before = made - distance - j;  // of the peer's, as many as it has made
      if (before <= 0 || before >= length) return add(j, length);
      add(j, before);
      add(j + before, length - before);
    });
  }

  /// Where a rank keeps the partial results R[i], R[i + 1], ... that it has made.
  static constexpr Piece stored(const Shape& shape, int owner, int i, int length) {
    if (shape.operation == Operation::reduce_scatter) return Piece{owner, Buffer::scratch, i, length};
    return Piece{owner, Buffer::output, (owner + i) % shape.ranks, length};
  }

  /// Step k of the way back.
  static constexpr void spread(std::vector<Move>& moves, const Shape& shape, int rank, int k) {
    const int p = shape.ranks;
    const int distance = skip(p, k);
    const int peer = detail::around(p, rank, distance);
    const bool raw = distance == 1 && shape.operation == Operation::all_gather;
    detail::cyclic_runs(p, peer, skip(p, k - 1) - distance, [&](int slot, int, int length) {
      const Piece from = raw ? Piece{peer, Buffer::input, 0, 1} : Piece{peer, Buffer::output, slot, length};
      moves.push_back(detail::copy(rank, slot, from, Piece{rank, Buffer::output, slot, length}));
    });
  }
};

static_assert(Generator<Circulant>);

}  // namespace meshwise
