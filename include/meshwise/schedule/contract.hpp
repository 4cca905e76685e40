// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "meshwise/schedule/schedule.hpp"

namespace meshwise {

/// Whether the outputs of an operation are reductions over all ranks; otherwise every block has one origin.
constexpr bool combines(Operation operation) {
  return operation == Operation::all_reduce || operation == Operation::reduce_scatter;
}

/// Whether a shape can be asked for at all: ranks from 1, a root among them (broadcast), no all-to-all in place.
///
/// An all-to-all has ranks^2 blocks, which must be countable in an int.
constexpr bool valid(const Shape& shape) {
  if (shape.ranks < 1) return false;
  if (shape.operation == Operation::broadcast) return shape.root >= 0 && shape.root < shape.ranks;
  if (shape.operation == Operation::all_to_all) return !shape.in_place && shape.ranks <= 46340;
  return true;
}

/// The number of different blocks of a shape. Block b of a vector cut in p parts; for all_to_all p * p blocks.
constexpr int blocks(const Shape& shape) {
  return shape.operation == Operation::all_to_all ? shape.ranks * shape.ranks : shape.ranks;
}

/// The number of slots of a rank's input buffer.
constexpr int input_slots(const Shape& shape, int rank) {
  switch (shape.operation) {
    case Operation::all_gather: return 1;
    case Operation::broadcast: return rank == shape.root ? shape.ranks : 0;
    default: return shape.ranks;
  }
}

/// The number of slots of a rank's output buffer.
constexpr int output_slots(const Shape& shape, [[maybe_unused]] int rank) {
  return shape.operation == Operation::reduce_scatter ? 1 : shape.ranks;
}

/// The block that an input slot holds before the collective, contributed by its rank.
constexpr int input_block(const Shape& shape, int rank, int slot) {
  switch (shape.operation) {
    case Operation::all_gather: return rank;
    case Operation::all_to_all: return rank * shape.ranks + slot;
    default: return slot;
  }
}

/// The block that an output slot must hold after the collective.
///
/// For an operation that combines it is the reduction of the contributions of all ranks, each exactly once; for the
/// others it is the contribution of `origin(shape, block)`.
constexpr int output_block(const Shape& shape, int rank, int slot) {
  switch (shape.operation) {
    case Operation::reduce_scatter: return rank;
    case Operation::all_to_all: return slot * shape.ranks + rank;
    default: return slot;
  }
}

/// The rank that contributes a block in an operation that does not combine.
constexpr int origin(const Shape& shape, int block) {
  switch (shape.operation) {
    case Operation::broadcast: return shape.root;
    case Operation::all_to_all: return block / shape.ranks;
    default: return block;
  }
}

/// The memory behind a piece: pieces overlap exactly if their places do.
///
/// Out of place it is the piece itself. In place, all_reduce and broadcast keep output slot s in input slot s (of the
/// root), reduce_scatter keeps the output of rank r in input slot r, all_gather the input of rank r in output slot r.
constexpr Piece place(const Shape& shape, Piece piece) {
  if (!shape.in_place || piece.buffer == Buffer::scratch) return piece;
  switch (shape.operation) {
    case Operation::all_reduce:
    case Operation::broadcast: piece.buffer = Buffer::output; break;
    case Operation::reduce_scatter:
      if (piece.buffer == Buffer::output) piece.slot += piece.rank;
      piece.buffer = Buffer::input;
      break;
    case Operation::all_gather:
      if (piece.buffer == Buffer::input) piece.slot += piece.rank;
      piece.buffer = Buffer::output;
      break;
    case Operation::all_to_all: break;
  }
  return piece;
}

/// Whether a schedule may write a slot of an input buffer: only where an output shares its memory.
constexpr bool writable_input(const Shape& shape, int rank, int slot) {
  if (!shape.in_place) return false;
  return shape.operation != Operation::reduce_scatter || slot == rank;
}

}  // namespace meshwise
