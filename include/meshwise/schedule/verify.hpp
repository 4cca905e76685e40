// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "meshwise/core/detail/list.hpp"
#include "meshwise/schedule/contract.hpp"
#include "meshwise/schedule/detail/symbols.hpp"
#include "meshwise/schedule/generator.hpp"
#include "meshwise/schedule/schedule.hpp"
#include "meshwise/schedule/verdict.hpp"

namespace meshwise {

namespace detail {

/// Whether every output slot holds what the contract wants; notes the first fault, or the order of combination.
constexpr void check_outputs(const Shape& shape, const Memory& memory, Verdict& verdict) {
  const Symbols& symbols = memory.symbols;
  const auto faulty = [&verdict](Fault fault, int rank, int slot) {
    verdict.fault = fault;
    verdict.rank = rank;
    verdict.slot = slot;
  };
  const bool combined = combines(shape.operation);
  const bool scan = shape.operation == Operation::inclusive_scan || shape.operation == Operation::exclusive_scan;
  // Outputs share values (an all_reduce has p of them in p * p slots), so each is looked at once, and of values that
  // differ in the order of pairs one; for scans once for each number of contributions that is wanted of it.
  std::vector<int> fine(static_cast<std::size_t>(symbols.count()), 0);
  std::vector<int> seen(static_cast<std::size_t>(shape.ranks), 0);  // the last check that met each contributor
  int checks = 0;
  std::vector<int> common(combined ? static_cast<std::size_t>(blocks(shape)) : 0, Symbols::undefined);
  bool in_order = true;
  bool left = true;
  bool canonical = true;
  bool identical = true;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const int wanted = combined ? contributors(shape, rank) : 1;
    for (int slot = 0; slot < output_slots(shape, rank); ++slot) {
      const int value = memory.value(Piece{rank, Buffer::output, slot, 1}, 0);
      if (value == Symbols::undefined) return faulty(Fault::output_undefined, rank, slot);
      const int block = symbols.block(value);
      if (block != output_block(shape, rank, slot)) return faulty(Fault::output_wrong_block, rank, slot);
      const int form = symbols.form(value);
      const std::int64_t leaves = symbols.leaves(value);
      // In rank order from 0 to the last one wanted: nothing is missing, repeated or foreign.
      const bool plain = combined && leaves == wanted && symbols.ascending(value) && symbols.first_rank(value) == 0 &&
                         symbols.last_rank(value) == wanted - 1;
      int& checked = fine[static_cast<std::size_t>(form)];
      if (!plain && checked != wanted) {
        if (leaves > wanted) return faulty(Fault::contribution_repeated, rank, slot);
        ++checks;
        for (const int contributor : symbols.contributors(value)) {
          int& mark = seen[static_cast<std::size_t>(contributor)];
          if (mark == checks) return faulty(Fault::contribution_repeated, rank, slot);
          mark = checks;
          if (combined ? contributor >= wanted : !contributes(shape, block, contributor)) {
            return faulty(Fault::contribution_foreign, rank, slot);
          }
        }
        if (leaves < wanted) return faulty(Fault::contribution_missing, rank, slot);
        checked = wanted;
      }
      if (!combined) continue;
      verdict.roundings = verdict.roundings > symbols.depth(value) ? verdict.roundings : symbols.depth(value);
      in_order = in_order && symbols.ascending(value);
      left = left && symbols.left_fold(value);
      canonical = canonical && (scan ? symbols.stepwise(value) : symbols.at_once(value));
      if (wanted != shape.ranks) continue;  // a prefix: no other rank has its contributions
      int& first = common[static_cast<std::size_t>(block)];
      if (first == Symbols::undefined) first = form;
      identical = identical && first == form;
    }
  }
  verdict.in_rank_order = in_order;
  verdict.left_fold_in_rank_order = in_order && left;
  verdict.canonical = in_order && canonical;
  verdict.identical_on_all_ranks = identical;
}

/// The symbolic execution of a schedule, round by round.
class Verification {
 public:
  constexpr explicit Verification(const Schedule& schedule)
      : schedule_(schedule),
        memory_(schedule.shape,
                std::vector<int>(static_cast<std::size_t>(schedule.shape.ranks), schedule.scratch_slots)),
        written_(memory_.places.size()),
        pairs_(static_cast<std::size_t>(schedule.shape.ranks) * static_cast<std::size_t>(schedule.shape.ranks), -1),
        read_by_(static_cast<std::size_t>(schedule.shape.ranks), 0),
        written_by_(static_cast<std::size_t>(schedule.shape.ranks), 0) {}

  constexpr Verdict run() {
    const int rounds = static_cast<int>(schedule_.rounds.size());
    for (int k = 0; k < rounds && verdict_.ok(); ++k) {
      const Round& round = schedule_.rounds[static_cast<std::size_t>(k)];
      const int moves = static_cast<int>(round.size());
      // All writes of the round are marked before any source is looked at: a conflict does not depend on the order.
      for (int m = 0; m < moves && verdict_.ok(); ++m) well_formed(round[static_cast<std::size_t>(m)], k, m);
      for (int m = 0; m < moves && verdict_.ok(); ++m) mark_writes(round[static_cast<std::size_t>(m)], k, m);
      for (int m = 0; m < moves && verdict_.ok(); ++m) check_reads(round[static_cast<std::size_t>(m)], k, m);
      for (int m = 0; m < moves && verdict_.ok(); ++m) execute(round[static_cast<std::size_t>(m)], k);
    }
    if (verdict_.ok()) check_outputs(schedule_.shape, memory_, verdict_);
    if (!verdict_.ok()) return verdict_;
    verdict_.rounds = rounds;
    verdict_.read = sum(read_by_);
    verdict_.written = sum(written_by_);
    return verdict_;
  }

 private:
  /// The last write of a slot: round, move in it, and how far from the beginning of the move's pieces.
  struct Mark {
    int round = -1;
    int move = -1;
    int offset = 0;
  };

  constexpr void faulty(Fault fault, int round, int move, int rank, int slot) {
    verdict_.fault = fault;
    verdict_.round = round;
    verdict_.move = move;
    verdict_.rank = rank;
    verdict_.slot = slot;
  }

  constexpr void well_formed(const Move& move, int k, int m) {
    if (move.from.empty() || move.to.empty() || move.by < 0 || move.by >= schedule_.shape.ranks) {
      return faulty(Fault::bad_move, k, m, move.by, -1);
    }
    const int count = move.from[0].count;
    for (const auto* pieces : {&move.from, &move.to}) {
      for (const Piece& piece : *pieces) {
        if (!memory_.places.contains(piece)) return faulty(Fault::out_of_range, k, m, piece.rank, piece.slot);
        if (piece.count != count) return faulty(Fault::bad_move, k, m, piece.rank, piece.slot);
      }
    }
  }

  constexpr void mark_writes(const Move& move, int k, int m) {
    for (const Piece& piece : move.to) {
      for (int i = 0; i < piece.count; ++i) {
        if (piece.buffer == Buffer::input && !writable_input(schedule_.shape, piece.rank, piece.slot + i)) {
          return faulty(Fault::input_written, k, m, piece.rank, piece.slot + i);
        }
        Mark& mark = written_[memory_.places.number(piece, i)];
        if (mark.round == k) return faulty(Fault::conflict, k, m, piece.rank, piece.slot + i);
        mark = Mark{k, m, i};
      }
    }
  }

  constexpr void check_reads(const Move& move, int k, int m) {
    for (const Piece& piece : move.from) {
      for (int i = 0; i < piece.count; ++i) {
        const std::size_t number = memory_.places.number(piece, i);
        const Mark& mark = written_[number];
        // A move may write what it reads, but only in step: a shifted overlap would read its own results.
        if (mark.round == k && (mark.move != m || mark.offset != i)) {
          return faulty(Fault::conflict, k, m, piece.rank, piece.slot + i);
        }
        const int value = memory_.slots[number];
        if (value == Symbols::undefined) return faulty(Fault::undefined_source, k, m, piece.rank, piece.slot + i);
        if (memory_.symbols.block(value) != move.block + i) {
          return faulty(Fault::wrong_block, k, m, piece.rank, piece.slot + i);
        }
      }
    }
  }

  constexpr void execute(const Move& move, int k) {
    memory_.perform(move);
    for (const Piece& piece : move.from) flow(piece, read_by_, piece.rank, move.by, move.by, k);
    for (const Piece& piece : move.to) flow(piece, written_by_, move.by, piece.rank, move.by, k);
    ++verdict_.moves;
  }

  /// Counts a piece that crosses from one rank to another.
  constexpr void flow(const Piece& piece, List<std::int64_t>& blocks, int from, int to, int by, int k) {
    if (from == to) return;
    blocks[static_cast<std::size_t>(by)] += piece.count;
    int& pair = pairs_[static_cast<std::size_t>(from) * static_cast<std::size_t>(schedule_.shape.ranks) +
                       static_cast<std::size_t>(to)];
    if (pair != k) ++verdict_.messages;
    pair = k;
  }

  static constexpr Count sum(const List<std::int64_t>& by_rank) {
    Count count;
    for (const std::int64_t blocks : by_rank) {
      count.total += blocks;
      count.most = count.most > blocks ? count.most : blocks;
    }
    return count;
  }

  const Schedule& schedule_;
  Memory memory_;
  List<Mark> written_;      ///< by place number
  std::vector<int> pairs_;  ///< the last round with data between an ordered pair of ranks
  List<std::int64_t> read_by_;
  List<std::int64_t> written_by_;
  Verdict verdict_;
};

}  // namespace detail

/// Proves a schedule by symbolic execution, or finds its first fault.
///
/// Every slot holds a combination of contributions of ranks to a block. Checked: pieces lie in their buffers, sources
/// are defined and hold the block that the move says, no move writes what another one of its round touches (memory
/// shared in place included), inputs stay as they were except where an output shares them, and every output ends as
/// the contract wants, each contribution exactly once. Moves wait for moves of earlier rounds only, so a schedule
/// that passes cannot dead-lock.
/// Cost: linear in the slots of all moves' pieces, and in the leaves of all different sums that outputs hold (ranks^2
/// for an all_reduce); usable in constant expressions.
constexpr Verdict verify(const Schedule& schedule) {
  if (!valid(schedule.shape) || schedule.scratch_slots < 0) {
    Verdict verdict;
    verdict.fault = Fault::bad_shape;
    return verdict;
  }
  return detail::Verification(schedule).run();
}

/// Proves a generator for one shape: the schedule that it writes, and that every rank alone gets the same picture, its
/// own moves and as partners all who touch its buffers, each once. What a test of an algorithm begins with.
///
/// Cost: as `verify`, and all partners of all ranks; usable in constant expressions.
/// Errors: `invalid_argument` for a shape that the generator does not support.
template <Generator G>
constexpr Verdict verify(const G& generator, const Shape& shape) {
  const Schedule schedule = materialise(generator, shape);
  const auto faulty = [](Fault fault, int round, int rank) {
    Verdict verdict;
    verdict.fault = fault;
    verdict.round = round;
    verdict.rank = rank;
    return verdict;
  };
  const auto size = static_cast<std::size_t>(shape.ranks);
  detail::List<char> named(size * size, 0);  // by owner, then by who may touch its buffers
  for (int round = 0; round < static_cast<int>(schedule.rounds.size()); ++round) {
    named.assign(size * size, 0);
    for (int rank = 0; rank < shape.ranks; ++rank) {
      for (const Move& move : generator.by(shape, rank, round)) {
        if (move.by != rank) return faulty(Fault::performer_wrong, round, rank);
      }
      for (const int partner : generator.partners(shape, rank, round)) {
        if (partner < 0 || partner >= shape.ranks || partner == rank) return faulty(Fault::partner_wrong, round, rank);
        char& seen = named[static_cast<std::size_t>(rank) * size + static_cast<std::size_t>(partner)];
        if (seen != 0) return faulty(Fault::partner_wrong, round, rank);
        seen = 1;
      }
    }
    for (const Move& move : schedule.rounds[static_cast<std::size_t>(round)]) {
      for (const auto* pieces : {&move.from, &move.to}) {
        for (const Piece& piece : *pieces) {
          if (piece.rank < 0 || piece.rank >= shape.ranks || piece.rank == move.by) continue;
          if (named[static_cast<std::size_t>(piece.rank) * size + static_cast<std::size_t>(move.by)] == 0) {
            return faulty(Fault::partner_missing, round, piece.rank);
          }
        }
      }
    }
  }
  return verify(schedule);
}

}  // namespace meshwise
