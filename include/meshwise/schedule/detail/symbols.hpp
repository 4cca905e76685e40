// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "meshwise/schedule/contract.hpp"
#include "meshwise/schedule/schedule.hpp"

namespace meshwise::detail {

/// Numbers the slots of all ranks, so that slots which share memory in place have the same number.
class Places {
 public:
  constexpr Places(const Shape& shape, const std::vector<int>& scratch_slots) : shape_(shape) {
    base_.push_back(0);
    for (int rank = 0; rank < shape.ranks; ++rank) {
      const int scratch = scratch_slots[static_cast<std::size_t>(rank)];
      scratch_.push_back(scratch);
      base_.push_back(base_.back() + static_cast<std::size_t>(input_slots(shape, rank)) +
                      static_cast<std::size_t>(output_slots(shape, rank)) + static_cast<std::size_t>(scratch));
    }
  }

  constexpr std::size_t size() const { return base_.back(); }

  /// Whether a piece lies in buffers that exist.
  constexpr bool contains(const Piece& piece) const {
    if (piece.rank < 0 || piece.rank >= shape_.ranks || piece.slot < 0 || piece.count < 1) return false;
    return piece.count <= slots(piece.rank, piece.buffer) - piece.slot;
  }

  /// The number of the i-th slot of a piece that is contained.
  constexpr std::size_t number(const Piece& piece, int i) const {
    const Piece at = place(shape_, piece);
    std::size_t base = base_[static_cast<std::size_t>(at.rank)];
    if (at.buffer != Buffer::input) base += static_cast<std::size_t>(input_slots(shape_, at.rank));
    if (at.buffer == Buffer::scratch) base += static_cast<std::size_t>(output_slots(shape_, at.rank));
    return base + static_cast<std::size_t>(at.slot + i);
  }

 private:
  constexpr int slots(int rank, Buffer buffer) const {
    if (buffer == Buffer::input) return input_slots(shape_, rank);
    if (buffer == Buffer::output) return output_slots(shape_, rank);
    return scratch_[static_cast<std::size_t>(rank)];
  }

  Shape shape_;
  std::vector<int> scratch_;
  std::vector<std::size_t> base_;
};

/// The values of a symbolic execution: contributions of ranks to blocks, and combinations of such values.
///
/// A value is a number; copying one costs nothing and combining costs the number of operands, so that the whole
/// order of summation is kept without being copied from slot to slot.
class Symbols {
 public:
  static constexpr int undefined = -1;

  /// The contribution of one rank to one block.
  constexpr int contribution(int block, int rank) {
    values_.push_back(Value{block, rank, 0, 0, 1, true});
    return static_cast<int>(values_.size()) - 1;
  }

  /// The combination of values of one block, in order. One value alone is itself.
  constexpr int combination(const std::vector<int>& operands) {
    if (operands.size() == 1) return operands[0];
    Value result;
    result.block = block(operands[0]);
    result.first = parts_.size();
    result.parts = operands.size();
    result.left_fold = at(operands[0]).left_fold;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      parts_.push_back(operands[i]);
      result.leaves += at(operands[i]).leaves;
      if (result.leaves > most_leaves) result.leaves = most_leaves;
      if (i > 0 && at(operands[i]).leaves != 1) result.left_fold = false;
    }
    values_.push_back(result);
    return static_cast<int>(values_.size()) - 1;
  }

  constexpr int block(int value) const { return at(value).block; }

  /// How many contributions a value consists of, repeated ones included; stops counting at 2^40.
  constexpr std::int64_t leaves(int value) const { return at(value).leaves; }

  /// Whether the value is ((a + b) + c) + ... in its order of contributors.
  constexpr bool left_fold(int value) const { return at(value).left_fold; }

  /// The contributing ranks in order of combination. Costs `leaves(value)`.
  constexpr std::vector<int> contributors(int value) const {
    std::vector<int> result;
    std::vector<int> open{value};
    while (!open.empty()) {
      const Value& top = at(open.back());
      open.pop_back();
      if (top.parts == 0) result.push_back(top.rank);
      for (std::size_t i = top.parts; i > 0; --i) open.push_back(parts_[top.first + i - 1]);
    }
    return result;
  }

  constexpr int count() const { return static_cast<int>(values_.size()); }

 private:
  static constexpr std::int64_t most_leaves = std::int64_t{1} << 40;

  struct Value {
    int block = 0;
    int rank = -1;
    std::size_t first = 0;  ///< in parts_
    std::size_t parts = 0;
    std::int64_t leaves = 0;
    bool left_fold = false;
  };

  constexpr const Value& at(int value) const { return values_[static_cast<std::size_t>(value)]; }

  std::vector<Value> values_;
  std::vector<int> parts_;
};

/// What every slot of every rank holds, as symbols.
struct Memory {
  Places places;
  Symbols symbols;
  std::vector<int> slots;  ///< by place number

  /// The state in which a collective begins: inputs defined, nothing else.
  constexpr Memory(const Shape& shape, const std::vector<int>& scratch_slots)
      : places(shape, scratch_slots), slots(places.size(), Symbols::undefined) {
    for (int rank = 0; rank < shape.ranks; ++rank) {
      for (int slot = 0; slot < input_slots(shape, rank); ++slot) {
        slots[places.number(Piece{rank, Buffer::input, slot, 1}, 0)] =
            symbols.contribution(input_block(shape, rank, slot), rank);
      }
    }
  }

  constexpr int& value(const Piece& piece, int i) { return slots[places.number(piece, i)]; }
  constexpr int value(const Piece& piece, int i) const { return slots[places.number(piece, i)]; }

  /// Executes a move of which all sources are defined and all pieces contained.
  constexpr void perform(const Move& move) {
    for (int i = 0; i < move.from[0].count; ++i) {
      operands.clear();
      for (const Piece& piece : move.from) operands.push_back(value(piece, i));
      const int result = symbols.combination(operands);
      for (const Piece& piece : move.to) value(piece, i) = result;
    }
  }

  std::vector<int> operands;  ///< of the combination at hand
};

}  // namespace meshwise::detail
