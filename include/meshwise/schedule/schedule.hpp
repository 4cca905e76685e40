// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "meshwise/schedule/routes.hpp"

namespace meshwise {

/// The collectives that schedules describe. A barrier is an all_reduce of nothing. The values are stable.
enum class Operation : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  all_to_all,
  reduce,
  gather,
  scatter,
  inclusive_scan,
  exclusive_scan,
  exchange,
};

/// The three memories of a rank that a move may touch.
enum class Buffer : std::uint8_t { input, output, scratch };

/// What a collective is asked to do, as far as its schedule depends on it. Lengths are not part of it.
struct Shape {
  Operation operation = Operation::all_reduce;
  int ranks = 1;
  int root = 0;                    ///< broadcast, reduce, gather, scatter; 0 for the others
  bool in_place = false;           ///< input and output share memory, in the operation's documented way
  const Routes* routes = nullptr;  ///< exchange only; outlives the shape

  /// Routes are compared by what they say, not by where they are.
  friend constexpr bool operator==(const Shape& a, const Shape& b) {
    return a.operation == b.operation && a.ranks == b.ranks && a.root == b.root && a.in_place == b.in_place &&
           (a.routes == b.routes || (a.routes != nullptr && b.routes != nullptr && *a.routes == *b.routes));
  }
};

/// `count` consecutive slots of one buffer of one rank. Slots have no length: the blocks they hold have.
struct Piece {
  int rank = 0;
  Buffer buffer = Buffer::input;
  int slot = 0;
  int count = 1;

  friend constexpr bool operator==(const Piece&, const Piece&) = default;
};

/// The one verb: combine `from`, in order and element by element, and store the result in every piece of `to`.
///
/// With one source it is a copy; with one source and one destination on different ranks, a message. All pieces have
/// the same count. A destination may be a source of the same move: each element is read before it is written.
struct Move {
  int by = 0;               ///< the rank that performs it
  int block = 0;            ///< the block that the first slot carries; it decides the length
  std::vector<Piece> from;  ///< combined as a left fold
  std::vector<Piece> to;
};

/// Moves of which none writes a slot that another one touches. Not a barrier: a move starts when its pieces are ready.
using Round = std::vector<Move>;

/// A collective as data: what is wanted (the shape) and the rounds that do it.
struct Schedule {
  Shape shape;
  int scratch_slots = 0;  ///< per rank
  std::vector<Round> rounds;
};

}  // namespace meshwise
