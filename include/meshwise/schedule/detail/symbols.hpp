// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "meshwise/core/detail/list.hpp"
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
/// order of summation is kept without being copied from slot to slot. The same operands in the same order are the same
/// value, whoever combines them: an all_reduce on p ranks then has as many values as it has different sums.
class Symbols {
 public:
  static constexpr int undefined = -1;

  /// The contribution of one rank to one block. Made once for each slot that begins with it.
  constexpr int contribution(int block, int rank) {
    Value value;
    value.block = block;
    value.first_rank = rank;
    value.last_rank = rank;
    value.form = count();
    values_.push_back(value);
    return value.form;
  }

  /// The combination of values of one block, in order. One value alone is itself.
  constexpr int combination(const std::vector<int>& operands) {
    if (operands.size() == 1) return operands[0];
    const int value = intern(operands);
    if (at(value).form >= 0) return value;
    // The form is the same combination of the operands' forms, of which the first two have no order.
    bool own = operands[0] <= operands[1];
    for (const int operand : operands) own = own && form(operand) == operand;
    int same = value;
    if (!own) {
      forms_.clear();
      for (const int operand : operands) forms_.push_back(form(operand));
      if (forms_[1] < forms_[0]) std::swap(forms_[0], forms_[1]);
      same = intern(forms_);
      values_[static_cast<std::size_t>(same)].form = same;
    }
    values_[static_cast<std::size_t>(value)].form = same;
    return value;
  }

  constexpr int block(int value) const { return at(value).block; }

  /// How many contributions a value consists of, repeated ones included; stops counting at 2^40.
  constexpr std::int64_t leaves(int value) const { return at(value).leaves; }

  /// Whether the value is ((a + b) + c) + ... in its order of contributors.
  constexpr bool left_fold(int value) const { return at(value).left_fold; }

  /// Whether it is that, each + a combination of its own (of one contribution alone too).
  constexpr bool stepwise(int value) const { return at(value).stepwise; }

  /// Whether it is one combination of contributions, or one contribution.
  constexpr bool at_once(int value) const { return at(value).at_once; }

  /// Whether the contributors, in order of combination, ascend; then none of them is there twice.
  constexpr bool ascending(int value) const { return at(value).ascending; }

  /// The most combinations that a contribution goes through, one inside the other.
  constexpr int depth(int value) const { return at(value).depth; }

  /// The first and the last contributor in order of combination.
  constexpr int first_rank(int value) const { return at(value).first_rank; }
  constexpr int last_rank(int value) const { return at(value).last_rank; }

  /// The same for values that differ only in the order of the first two operands of combinations, at any depth: their
  /// bits are equal if the reduction is commutative.
  constexpr int form(int value) const { return at(value).form; }

  /// The contributing ranks in order of combination. Costs `leaves(value)`.
  constexpr std::vector<int> contributors(int value) const {
    std::vector<int> result;
    std::vector<int> open{value};
    while (!open.empty()) {
      const Value& top = at(open.back());
      open.pop_back();
      if (top.parts == 0) result.push_back(top.first_rank);
      for (std::size_t i = top.parts; i > 0; --i) open.push_back(parts_[top.first + i - 1]);
    }
    return result;
  }

  constexpr int count() const { return static_cast<int>(values_.size()); }

 private:
  static constexpr std::int64_t most_leaves = std::int64_t{1} << 40;

  struct Value {
    std::int64_t leaves = 1;
    std::size_t first = 0;  ///< in parts_
    std::uint32_t parts = 0;
    int block = 0;
    int first_rank = -1;
    int last_rank = -1;
    int form = -1;
    int depth = 0;
    bool left_fold = true;
    bool stepwise = true;
    bool at_once = true;
    bool ascending = true;
  };

  constexpr const Value& at(int value) const { return values_[static_cast<std::size_t>(value)]; }

  constexpr int make(const std::vector<int>& operands) {
    Value result = at(operands[0]);
    result.first = parts_.size();
    result.parts = static_cast<std::uint32_t>(operands.size());
    result.form = -1;
    result.stepwise = result.stepwise && operands.size() == 2;
    result.at_once = result.leaves == 1;
    parts_.push_back(operands[0]);
    for (std::size_t i = 1; i < operands.size(); ++i) {
      const Value& next = at(operands[i]);
      parts_.push_back(operands[i]);
      result.leaves = result.leaves + next.leaves < most_leaves ? result.leaves + next.leaves : most_leaves;
      if (next.depth > result.depth) result.depth = next.depth;
      if (next.leaves != 1) result.left_fold = result.stepwise = result.at_once = false;
      result.ascending = result.ascending && next.ascending && result.last_rank < next.first_rank;
      result.last_rank = next.last_rank;
    }
    ++result.depth;
    values_.push_back(result);
    return count() - 1;
  }

  /// The combination of these operands, made if it is new: a table with open addressing, at most half full.
  constexpr int intern(const std::vector<int>& operands) {
    if (2 * (combinations_ + 1) > table_.size()) grow();
    std::size_t i = hash(operands.data(), operands.size()) & (table_.size() - 1);
    for (; table_[i] >= 0; i = (i + 1) & (table_.size() - 1)) {
      const Value& value = at(table_[i]);
      if (value.parts != operands.size()) continue;
      std::size_t k = 0;
      while (k < operands.size() && parts_[value.first + k] == operands[k]) ++k;
      if (k == operands.size()) return table_[i];
    }
    table_[i] = make(operands);
    ++combinations_;
    return table_[i];
  }

  constexpr void grow() {
    std::vector<int> bigger(table_.empty() ? 16 : 4 * table_.size(), -1);
    for (const int value : table_) {
      if (value < 0) continue;
      std::size_t i = hash(parts_.data() + at(value).first, at(value).parts) & (bigger.size() - 1);
      while (bigger[i] >= 0) i = (i + 1) & (bigger.size() - 1);
      bigger[i] = value;
    }
    table_ = std::move(bigger);
  }

  static constexpr std::size_t hash(const int* operands, std::size_t number) {
    std::uint64_t state = number;
    for (std::size_t i = 0; i < number; ++i) {
      state = (state ^ static_cast<std::uint32_t>(operands[i])) * 0x9e3779b97f4a7c15U;
      state ^= state >> 29;
    }
    return static_cast<std::size_t>(state);
  }

  List<Value> values_;
  std::vector<int> parts_;
  std::vector<int> table_;  ///< of the combinations, by hash; -1 where free
  std::size_t combinations_ = 0;
  std::vector<int> forms_;  ///< of the operands of the combination at hand
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
