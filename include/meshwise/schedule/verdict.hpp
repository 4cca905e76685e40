// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace meshwise {

/// What is wrong with a schedule.
enum class Fault : std::uint8_t {
  none,
  bad_shape,              ///< the shape itself cannot be asked for
  bad_move,               ///< no source, no destination, counts that differ, or a performer that does not exist
  out_of_range,           ///< a piece outside of its buffer
  undefined_source,       ///< a source that nothing has been written to
  wrong_block,            ///< a source holds another block than the move says
  conflict,               ///< a slot is written by one move and touched by another one of the same round
  input_written,          ///< an input slot is written that no output shares
  output_undefined,       ///< an output slot ends without a value
  output_wrong_block,     ///< an output slot ends with another block
  contribution_missing,   ///< an output lacks the contribution of a rank
  contribution_repeated,  ///< an output holds the contribution of a rank twice
  performer_wrong,        ///< a generator gives a rank a move that another rank performs
  partner_wrong,          ///< a generator names a partner that is the rank itself, no rank, or named before
  partner_missing,        ///< a generator does not name a rank whose move touches a buffer of this one
  contribution_foreign,   ///< an output holds the contribution of a rank that has no part in it
};

/// A fault in words.
constexpr const char* text(Fault fault) {
  switch (fault) {
    case Fault::none: return "no fault";
    case Fault::bad_shape: return "the shape cannot be asked for";
    case Fault::bad_move: return "a move without source, destination, common count or performer";
    case Fault::out_of_range: return "a piece outside of its buffer";
    case Fault::undefined_source: return "a source that was never written";
    case Fault::wrong_block: return "a source with another block than the move says";
    case Fault::conflict: return "a slot that is written and touched in one round";
    case Fault::input_written: return "an input slot is written";
    case Fault::output_undefined: return "an output slot that was never written";
    case Fault::output_wrong_block: return "an output slot with the wrong block";
    case Fault::contribution_missing: return "an output without the contribution of some rank";
    case Fault::contribution_repeated: return "an output with a repeated contribution";
    case Fault::performer_wrong: return "a move that another rank performs than the one that was asked";
    case Fault::partner_wrong: return "a partner that is the rank itself, no rank, or named twice";
    case Fault::partner_missing: return "a rank whose move touches a buffer is not named as a partner";
    case Fault::contribution_foreign: return "an output with the contribution of a rank that has no part in it";
  }
  return "unknown fault";
}

/// The number of blocks or messages, over all ranks and of the busiest rank.
struct Count {
  std::int64_t total = 0;
  std::int64_t most = 0;

  friend constexpr bool operator==(const Count&, const Count&) = default;
};

/// What is known about a schedule: the first fault and where it is, or else what the schedule does.
struct Verdict {
  Fault fault = Fault::none;
  int round = -1;  ///< of the fault, -1 for a fault of the result
  int move = -1;   ///< in that round
  int rank = -1;   ///< of the piece at fault
  int slot = -1;   ///< of the piece at fault

  /// In every output the contributions stand in rank order, however they are bracketed: what a reduction needs that is
  /// associative but does not commute. True if nothing is combined.
  bool in_rank_order = false;
  /// Every output is the left fold of the contributions of ranks 0, 1, ... (of one rank if nothing is combined). Then
  /// the result does not depend on the algorithm, bit for bit, if partial results are stored as exactly as they are
  /// computed; a move rounds when it stores bf16, fp16 or fp8.
  bool left_fold_in_rank_order = false;
  /// Every output is that left fold with the roundings of its definition: one move combines all contributions; in scans
  /// a move combines the prefix before and the next contribution. Then the result does not depend on the algorithm, bit
  /// for bit, whatever the element.
  bool canonical = false;
  /// All ranks that get a block, combined from the same contributions, get the value of the same tree: the same
  /// brackets and the same moves, the first two operands of a move taken as a pair without order. So the bits are the
  /// same on all ranks, for a reduction that commutes; for another one `in_rank_order` leaves no pair to exchange.
  bool identical_on_all_ranks = false;
  /// The most moves that combine on the way of a contribution to an output. So often it is rounded to the element type,
  /// where results are stored; see all_reduce for what that does to sums of bf16, fp16 and fp8.
  int roundings = 0;
  int rounds = 0;
  std::int64_t moves = 0;
  Count read;                 ///< blocks that moves read from ranks other than their performer
  Count written;              ///< blocks that moves write to ranks other than their performer
  std::int64_t messages = 0;  ///< ordered pairs of ranks between which data flows, summed over rounds

  constexpr bool ok() const { return fault == Fault::none; }
};

}  // namespace meshwise
