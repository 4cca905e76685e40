// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "meshwise/schedule/detail/folding.hpp"
#include "meshwise/schedule/detail/logarithm.hpp"
#include "meshwise/schedule/generator.hpp"

namespace meshwise {

/// Whole vectors between partners at distance 1, 2, 4, ...: the fewest rounds, for short vectors.
///
/// all_reduce: of p = 2^m + e ranks e fold with a neighbour; the 2^m that are left exchange partial results, the
/// nearest first; the folded ranks fetch the result. m rounds for a power of two, m + 2 otherwise. A rank reads p
/// blocks in every round in which it takes part: m p, at most (m + 1) p with folding. Partners combine low with high,
/// so contributions stand in rank order and all ranks compute one and the same tree: results are identical.
/// all_gather: powers of two only; m rounds, p - 1 blocks read per rank.
/// inclusive_scan: in round k rank r puts the partial result of rank r - 2^k before its own; ceil(lg p) rounds, of
/// which rank r takes part in ceil(lg(r + 1)), p blocks each. exclusive_scan: the first round takes the vectors of
/// ranks r - 2 and r - 1 at once, then the same; ceil(lg(p - 1)) rounds (one for 2 ranks) and p more blocks in the
/// first. Both keep rank order; the tree of rank r depends on r only.
///
/// Partial results alternate between output and scratch, since partners read them while the next one is written:
/// p scratch slots. In place an odd number of steps begins and ends in the output: 2 p slots. A rank of an in-place
/// operation with a single step, which has nothing to alternate with, steps to scratch and copies in the next round
/// (a round more for 2 ranks in all_reduce and for 3 in exclusive_scan).
///
/// Source: Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in MPICH, 2005; the
/// scans: Hillis and Steele, Data parallel algorithms, 1986.
struct RecursiveDoubling {
  static constexpr const char* name = "recursive_doubling";

  static constexpr bool supports(const Shape& shape) {
    if (!valid(shape)) return false;
    switch (shape.operation) {
      case Operation::all_reduce:
      case Operation::inclusive_scan:
      case Operation::exclusive_scan: return true;
      case Operation::all_gather: return detail::power_of_two(shape.ranks);
      default: return false;
    }
  }

  static constexpr int rounds(const Shape& shape) {
    const int p = shape.ranks;
    const int steps = steps_of(shape, p - 1);
    if (p == 1) return shape.in_place || shape.operation == Operation::exclusive_scan ? 0 : 1;
    switch (shape.operation) {
      case Operation::all_reduce: {
        const detail::Folding folding(p);
        const int closing = folding.rounds() == 1 || (shape.in_place && steps == 1) ? 1 : 0;
        return folding.rounds() + steps + closing;
      }
      case Operation::exclusive_scan: return shape.in_place && p == 3 ? 2 : steps;
      default: return steps;
    }
  }

  static constexpr int scratch_slots(const Shape& shape) {
    const int p = shape.ranks;
    if (p == 1 || shape.operation == Operation::all_gather) return 0;
    const bool folded = shape.operation == Operation::all_reduce && detail::Folding(p).rounds() == 1;
    // Nobody reads the last rank of a scan, so it needs none.
    const int steps = steps_of(shape, shape.operation == Operation::all_reduce ? p - 1 : p - 2);
    if (!shape.in_place) return steps > 1 || folded ? p : 0;
    const bool odd = shape.operation == Operation::all_reduce ? steps % 2 == 1 && steps > 1 : steps > 2;
    return steps == 0 ? 0 : odd ? 2 * p : p;
  }

  static constexpr std::vector<Move> by(const Shape& shape, int rank, int round) {
    switch (shape.operation) {
      case Operation::all_reduce: return reduce_all(shape, rank, round);
      case Operation::all_gather: return gather_all(shape, rank, round);
      default: return scan(shape, rank, round);
    }
  }

  static constexpr std::vector<int> partners(const Shape& shape, int rank, int round) {
    std::vector<int> result;
    const int p = shape.ranks;
    if (p == 1) return result;
    if (shape.operation == Operation::all_gather) {
      result.push_back(rank ^ (1 << round));
    } else if (shape.operation == Operation::all_reduce) {
      const detail::Folding folding(p);
      const int step = round - folding.rounds();
      if (step >= 0 && step < folding.steps()) {
        if (folding.works(rank)) result.push_back(folding.rank(folding.worker(rank) ^ (1 << step)));
      } else if (folding.paired(rank) && folding.works(rank) == (step >= 0)) {
        result.push_back(folding.mate(rank));
      }
    } else {
      // In an exclusive scan rank 0 has no partial result that anybody could read after the first round.
      const bool exclusive = shape.operation == Operation::exclusive_scan;
      const int after = 1 << round;
      if (rank < p - after && !(exclusive && rank == 0 && round > 0)) result.push_back(rank + after);
      if (exclusive && round == 0 && rank < p - 2) result.push_back(rank + 2);
    }
    return result;
  }

 private:
  /// How many combining steps a rank takes.
  static constexpr int steps_of(const Shape& shape, int rank) {
    switch (shape.operation) {
      case Operation::inclusive_scan: return detail::ceil_lg(rank + 1);
      case Operation::exclusive_scan: return rank < 2 ? rank : detail::ceil_lg(rank);
      default: return detail::floor_lg(shape.ranks);
    }
  }

  /// Where a rank that takes `steps` steps has its partial result after `done` of them, from 1 on.
  static constexpr Piece partial(const Shape& shape, int rank, int done, int steps) {
    const int p = shape.ranks;
    if (shape.operation != Operation::all_reduce && rank == p - 1) return Piece{rank, Buffer::output, 0, p};
    if (shape.in_place && done == 1 && steps % 2 == 1) return Piece{rank, Buffer::scratch, steps == 1 ? 0 : p, p};
    return Piece{rank, (steps - done) % 2 == 0 ? Buffer::output : Buffer::scratch, 0, p};
  }

  static constexpr Piece whole(const Shape& shape, int rank, Buffer buffer) {
    return Piece{rank, buffer, 0, shape.ranks};
  }

  static constexpr Move join(int by, Piece low, Piece high, Piece to) {
    Move move = detail::copy(by, 0, low, to);
    move.from.push_back(high);
    return move;
  }

  /// Where a worker of an all_reduce has its partial result after `done` steps.
  static constexpr Piece held(const Shape& shape, const detail::Folding& folding, int rank, int done) {
    if (done > 0) return partial(shape, rank, done, folding.steps());
    if (!folding.paired(rank)) return whole(shape, rank, Buffer::input);
    const bool even = folding.steps() % 2 == 0;
    return whole(shape, rank, shape.in_place || even ? Buffer::output : Buffer::scratch);
  }

  static constexpr std::vector<Move> reduce_all(const Shape& shape, int rank, int round) {
    std::vector<Move> moves;
    const int p = shape.ranks;
    if (p == 1) {
      detail::add_copy(moves, shape, 0, 0, whole(shape, 0, Buffer::input), whole(shape, 0, Buffer::output));
      return moves;
    }
    const detail::Folding folding(p);
    const int steps = folding.steps();
    const int step = round - folding.rounds();
    if (step < 0) {
      if (folding.paired(rank) && folding.works(rank)) {
        moves.push_back(join(rank, whole(shape, rank, Buffer::input), whole(shape, folding.mate(rank), Buffer::input),
                             held(shape, folding, rank, 0)));
      }
    } else if (step < steps) {
      if (!folding.works(rank)) return moves;
      const int worker = folding.worker(rank);
      const int other = worker ^ (1 << step);
      const Piece mine = held(shape, folding, rank, step);
      const Piece theirs = held(shape, folding, folding.rank(other), step);
      moves.push_back(join(rank, worker < other ? mine : theirs, worker < other ? theirs : mine,
                           held(shape, folding, rank, step + 1)));
    } else {
      const int source = folding.works(rank) ? rank : folding.mate(rank);
      const Piece from = held(shape, folding, source, steps);
      const Piece to = whole(shape, rank, Buffer::output);
      if (from != to) moves.push_back(detail::copy(rank, 0, from, to));
    }
    return moves;
  }

  static constexpr std::vector<Move> gather_all(const Shape& shape, int rank, int round) {
    std::vector<Move> moves;
    const Piece input{rank, Buffer::input, 0, 1};
    if (round == 0) detail::add_copy(moves, shape, rank, rank, input, Piece{rank, Buffer::output, rank, 1});
    if (shape.ranks == 1) return moves;
    const int size = 1 << round;
    const int peer = rank ^ size;
    const int first = peer & ~(size - 1);
    const Piece from = round == 0 ? Piece{peer, Buffer::input, 0, 1} : Piece{peer, Buffer::output, first, size};
    moves.push_back(detail::copy(rank, first, from, Piece{rank, Buffer::output, first, size}));
    return moves;
  }

  static constexpr std::vector<Move> scan(const Shape& shape, int rank, int round) {
    std::vector<Move> moves;
    const bool exclusive = shape.operation == Operation::exclusive_scan;
    const int steps = steps_of(shape, rank);
    const Piece output = whole(shape, rank, Buffer::output);
    if (rank == 0) {
      if (round == 0 && !exclusive) detail::add_copy(moves, shape, 0, 0, whole(shape, 0, Buffer::input), output);
    } else if (round >= steps) {
      const Piece last = partial(shape, rank, steps, steps);
      if (round == steps && last != output) moves.push_back(detail::copy(rank, 0, last, output));
    } else if (round == 0 && exclusive) {
      const Piece to = partial(shape, rank, 1, steps);
      Move move = detail::copy(rank, 0, whole(shape, rank - 1, Buffer::input), to);
      if (rank > 1) move.from.insert(move.from.begin(), whole(shape, rank - 2, Buffer::input));
      moves.push_back(std::move(move));
    } else {
      moves.push_back(join(rank, prefix(shape, rank - (1 << round), round), prefix(shape, rank, round),
                           partial(shape, rank, round + 1, steps)));
    }
    return moves;
  }

  /// Where a rank of a scan has what it knows at the beginning of a round.
  static constexpr Piece prefix(const Shape& shape, int rank, int round) {
    const int steps = steps_of(shape, rank);
    const int done = round < steps ? round : steps;
    return done == 0 ? whole(shape, rank, Buffer::input) : partial(shape, rank, done, steps);
  }
};

static_assert(Generator<RecursiveDoubling>);

}  // namespace meshwise
