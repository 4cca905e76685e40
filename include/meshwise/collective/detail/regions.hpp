// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "meshwise/collective/call.hpp"
#include "meshwise/core/split.hpp"

namespace meshwise::detail {

/// The part of `count` elements that belongs to a rank.
constexpr Range rank_part(std::size_t count, int ranks, int rank) {
  return split(count, static_cast<std::size_t>(ranks), static_cast<std::size_t>(rank));
}

/// Whether the one slot of a buffer is its rank's block, at the beginning; otherwise slots lie at their places in the
/// whole vector.
constexpr bool alone(Operation operation, Buffer buffer) {
  switch (operation) {
    case Operation::reduce_scatter:
    case Operation::scatter: return buffer == Buffer::output;
    case Operation::all_gather:
    case Operation::gather: return buffer == Buffer::input;
    default: return false;
  }
}

/// The regions of vectors that are cut into equal parts. context: the number of elements of the whole vector, a
/// std::size_t; for all_to_all of one rank's buffer.
inline Region span_region(const void* context, const Shape& shape, Buffer buffer, int rank, int slot) {
  const std::size_t count = *static_cast<const std::size_t*>(context);
  const bool own = alone(shape.operation, buffer);
  const Range part = rank_part(count, shape.ranks, own ? rank : slot);
  return Region{own ? 0 : part.begin, part.size, part.size, 1};
}

/// The regions of vectors that are cut where the caller says. context: where each block begins, and where the last one
/// ends, ranks + 1 numbers.
inline Region ragged_region(const void* context, const Shape& shape, Buffer buffer, int rank, int slot) {
  const std::size_t* const begins = static_cast<const std::size_t*>(context);
  const bool own = alone(shape.operation, buffer);
  const std::size_t* const block = begins + (own ? rank : slot);
  return Region{own ? 0 : block[0], block[1] - block[0], block[1] - block[0], 1};
}

/// The regions of an all_to_all in which a rank knows its own blocks only. context: where the blocks of its owner's
/// input begin and the last one ends, ranks + 1 numbers, then the same for its output.
inline Region own_region(const void* context, const Shape& shape, Buffer buffer, int, int slot) {
  const std::size_t* const begins = static_cast<const std::size_t*>(context);
  const std::size_t* const block = begins + (buffer == Buffer::output ? shape.ranks + 1 : 0) + slot;
  return Region{block[0], block[1] - block[0], block[1] - block[0], 1};
}

}  // namespace meshwise::detail
