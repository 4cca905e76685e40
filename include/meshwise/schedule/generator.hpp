// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/core/error.hpp"
#include "meshwise/schedule/contract.hpp"
#include "meshwise/schedule/schedule.hpp"

namespace meshwise {

/// An algorithm that writes schedules lazily: a rank asks for its own moves, whatever the number of ranks.
///
/// A generator is a value: most are empty, some carry what they need to know of the topology (the dims of a torus, the
/// nodes of a hierarchy). All members are const, constexpr and cost no more than what they return:
///   name                           a word for messages and environment variables
///   supports(shape)                whether the other members may be called
///   rounds(shape)                  the number of rounds
///   scratch_slots(shape)           scratch slots of every rank
///   by(shape, rank, round)         the moves which that rank performs in that round, in its order
///   partners(shape, rank, round)   the other ranks whose moves in that round touch a buffer of `rank`; may name
///                                  more, never fewer; ascending or not, each once
/// and may have
///   alike(shape, round)            how many rounds, from this one on, cost the same on every rank: the same number of
///                                  blocks moved along the same kinds of links; 1 without this member
///   description()                  the name with all parameters that matter, as text: ranks compare it, and errors and
///                                  `explain` print it. Without it generators of one name are taken for the same.
template <class G>
concept Generator = requires(const G& generator, const Shape& shape, int number) {
  { generator.name } -> std::convertible_to<const char*>;
  { generator.supports(shape) } -> std::same_as<bool>;
  { generator.rounds(shape) } -> std::same_as<int>;
  { generator.scratch_slots(shape) } -> std::same_as<int>;
  { generator.by(shape, number, number) } -> std::same_as<std::vector<Move>>;
  { generator.partners(shape, number, number) } -> std::same_as<std::vector<int>>;
};

namespace detail {

template <class G>
concept DescribedGenerator = requires(const G& generator) {
  { generator.description() } -> std::convertible_to<std::string>;
};

[[noreturn]] inline void refuse_shape(const char* function, const char* generator, const Shape& shape, int rank) {
  const std::string found = std::string(operation_name(shape.operation)) + (shape.in_place ? " in place" : "") +
                            " on " + std::to_string(shape.ranks) + " ranks, root " + std::to_string(shape.root) +
                            ", for rank " + std::to_string(rank);
  fail(
      function, std::string("a shape that ") + generator + " supports and a rank in it", found,
      "ranks must be at least 1, root and rank less than ranks; not every algorithm does every operation, or in place");
}

template <Generator G>
constexpr void require_shape(const char* function, const G& generator, const Shape& shape, int rank) {
  if (!generator.supports(shape) || rank < 0 || rank >= shape.ranks)
    refuse_shape(function, generator.name, shape, rank);
}

/// Numbers for the description of a generator: "{4, 2}".
inline std::string list_text(const std::vector<int>& numbers) {
  std::string text = "{";
  for (const int number : numbers) text += (text.size() > 1 ? ", " : "") + std::to_string(number);
  return text + "}";
}

/// Every rank but one, beginning with its successor.
constexpr std::vector<int> others(int ranks, int rank) {
  std::vector<int> result;
  result.reserve(static_cast<std::size_t>(ranks));
  for (int k = 1; k < ranks; ++k) result.push_back((rank + k) % ranks);
  return result;
}

/// `rank` + `distance` on a ring; `distance` may be negative, down to -2 * `ranks`.
constexpr int around(int ranks, int rank, int distance) { return (rank + distance + 2 * ranks) % ranks; }

/// A move of one slot between single pieces.
constexpr Move copy(int by, int block, Piece from, Piece to) {
  Move move;
  move.by = by;
  move.block = block;
  move.from.push_back(from);
  move.to.push_back(to);
  return move;
}

/// Adds a copy unless both ends are the same memory.
constexpr void add_copy(std::vector<Move>& moves, const Shape& shape, int by, int block, Piece from, Piece to) {
  if (place(shape, from) == place(shape, to)) return;
  moves.push_back(copy(by, block, from, to));
}

}  // namespace detail

/// Writes a whole schedule down, for `verify` and for pictures; a running rank never needs it.
///
/// Cost: as many moves as the schedule has. Errors: `invalid_argument` for a shape that `G` does not support.
template <Generator G>
constexpr Schedule materialise(const G& generator, const Shape& shape) {
  detail::require_shape("materialise", generator, shape, 0);
  Schedule schedule;
  schedule.shape = shape;
  schedule.scratch_slots = generator.scratch_slots(shape);
  const int rounds = generator.rounds(shape);
  for (int k = 0; k < rounds; ++k) {
    Round round;
    for (int rank = 0; rank < shape.ranks; ++rank) {
      for (Move& move : generator.by(shape, rank, k)) round.push_back(std::move(move));
    }
    schedule.rounds.push_back(std::move(round));
  }
  return schedule;
}

/// The same for a generator without parameters.
template <Generator G>
constexpr Schedule materialise(const Shape& shape) {
  return materialise(G{}, shape);
}

}  // namespace meshwise
