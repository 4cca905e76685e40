// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "meshwise/schedule/schedule.hpp"

namespace meshwise {

/// The word for an operation in messages and environment variables, as users spell the function.
constexpr const char* operation_name(Operation operation) {
  switch (operation) {
    case Operation::all_reduce: return "all_reduce";
    case Operation::reduce_scatter: return "reduce_scatter";
    case Operation::all_gather: return "all_gather";
    case Operation::broadcast: return "broadcast";
    case Operation::all_to_all: return "all_to_all";
    case Operation::reduce: return "reduce";
    case Operation::gather: return "gather";
    case Operation::scatter: return "scatter";
    case Operation::inclusive_scan: return "inclusive_scan";
    case Operation::exclusive_scan: return "exclusive_scan";
    case Operation::exchange: return "exchange";
  }
  return "no operation";
}

/// Whether the outputs of an operation are reductions; otherwise every block is somebody's contribution as it was.
constexpr bool combines(Operation operation) {
  switch (operation) {
    case Operation::all_reduce:
    case Operation::reduce_scatter:
    case Operation::reduce:
    case Operation::inclusive_scan:
    case Operation::exclusive_scan: return true;
    default: return false;
  }
}

/// Whether one rank, the root, has another part than the others.
constexpr bool rooted(Operation operation) {
  switch (operation) {
    case Operation::broadcast:
    case Operation::reduce:
    case Operation::gather:
    case Operation::scatter: return true;
    default: return false;
  }
}

/// Whether a shape can be asked for at all: ranks from 1, a root among them, all_to_all and exchange out of place,
/// routes for an exchange only.
///
/// An all-to-all has ranks^2 blocks, which must be countable in an int.
constexpr bool valid(const Shape& shape) {
  if (shape.ranks < 1) return false;
  if (shape.root < 0 || shape.root >= shape.ranks || (shape.root != 0 && !rooted(shape.operation))) return false;
  if (shape.operation == Operation::exchange) {
    return !shape.in_place && shape.routes != nullptr && shape.routes->ranks() == shape.ranks && shape.routes->valid();
  }
  if (shape.routes != nullptr) return false;
  if (shape.operation == Operation::all_to_all) return !shape.in_place && shape.ranks <= 46340;
  return true;
}

/// The number of different blocks of a shape. Block b of a vector cut in p parts; for all_to_all p * p blocks.
constexpr int blocks(const Shape& shape) {
  if (shape.operation == Operation::exchange) return shape.routes->blocks;
  return shape.operation == Operation::all_to_all ? shape.ranks * shape.ranks : shape.ranks;
}

/// The number of slots of a rank's input buffer.
constexpr int input_slots(const Shape& shape, int rank) {
  switch (shape.operation) {
    case Operation::all_gather:
    case Operation::gather: return 1;
    case Operation::broadcast:
    case Operation::scatter: return rank == shape.root ? shape.ranks : 0;
    case Operation::exchange: return static_cast<int>(shape.routes->held[static_cast<std::size_t>(rank)].size());
    default: return shape.ranks;
  }
}

/// The number of slots of a rank's output buffer.
constexpr int output_slots(const Shape& shape, int rank) {
  switch (shape.operation) {
    case Operation::reduce_scatter:
    case Operation::scatter: return 1;
    case Operation::reduce:
    case Operation::gather: return rank == shape.root ? shape.ranks : 0;
    case Operation::exclusive_scan: return rank == 0 ? 0 : shape.ranks;
    case Operation::exchange: return static_cast<int>(shape.routes->wanted[static_cast<std::size_t>(rank)].size());
    default: return shape.ranks;
  }
}

/// The block that an input slot holds before the collective, contributed by its rank.
constexpr int input_block(const Shape& shape, int rank, int slot) {
  switch (shape.operation) {
    case Operation::all_gather:
    case Operation::gather: return rank;
    case Operation::all_to_all: return rank * shape.ranks + slot;
    case Operation::exchange: return shape.routes->held[static_cast<std::size_t>(rank)][static_cast<std::size_t>(slot)];
    default: return slot;
  }
}

/// The block that an output slot must hold after the collective.
///
/// For an operation that combines it is the reduction of the contributions of ranks 0 to `contributors(shape, rank)`,
/// each exactly once; for the others a contribution of a rank that `contributes`.
constexpr int output_block(const Shape& shape, int rank, int slot) {
  switch (shape.operation) {
    case Operation::reduce_scatter:
    case Operation::scatter: return rank;
    case Operation::all_to_all: return slot * shape.ranks + rank;
    case Operation::exchange:
      return shape.routes->wanted[static_cast<std::size_t>(rank)][static_cast<std::size_t>(slot)];
    default: return slot;
  }
}

/// How many ranks, from rank 0 on, contribute to an output of a rank in an operation that combines.
constexpr int contributors(const Shape& shape, int rank) {
  switch (shape.operation) {
    case Operation::inclusive_scan: return rank + 1;
    case Operation::exclusive_scan: return rank;
    default: return shape.ranks;
  }
}

/// Whether a rank's contribution to a block is what an operation that does not combine must deliver.
constexpr bool contributes(const Shape& shape, int block, int rank) {
  switch (shape.operation) {
    case Operation::broadcast:
    case Operation::scatter: return rank == shape.root;
    case Operation::all_to_all: return rank == block / shape.ranks;
    case Operation::exchange:
      for (const Routes::Place& holder : shape.routes->holders[static_cast<std::size_t>(block)]) {
        if (holder.rank == rank) return true;
      }
      return false;
    default: return rank == block;
  }
}

/// The memory behind a piece: pieces overlap exactly if their places do.
///
/// Out of place it is the piece itself. In place, all_reduce, broadcast (at the root), reduce (at the root) and the
/// scans keep output slot s in input slot s; reduce_scatter keeps the output of rank r in input slot r, all_gather the
/// input of rank r in output slot r; gather keeps the root's input in its output slot, scatter its output in its input
/// slot. Only the root of a reduce, gather or scatter is in place, and only it knows: their schedules have the same
/// moves in and out of place, so that one plan, made for in place, serves both.
constexpr Piece place(const Shape& shape, Piece piece) {
  if (!shape.in_place || piece.buffer == Buffer::scratch) return piece;
  const bool input = piece.buffer == Buffer::input;
  switch (shape.operation) {
    case Operation::all_reduce:
    case Operation::broadcast: piece.buffer = Buffer::output; break;
    case Operation::inclusive_scan:
    case Operation::exclusive_scan: piece.buffer = Buffer::input; break;
    case Operation::reduce:
      if (piece.rank == shape.root) piece.buffer = Buffer::output;
      break;
    case Operation::reduce_scatter:
      if (!input) piece.slot += piece.rank;
      piece.buffer = Buffer::input;
      break;
    case Operation::all_gather:
      if (input) piece.slot += piece.rank;
      piece.buffer = Buffer::output;
      break;
    case Operation::gather:
      if (piece.rank != shape.root) break;
      if (input) piece.slot += piece.rank;
      piece.buffer = Buffer::output;
      break;
    case Operation::scatter:
      if (piece.rank != shape.root) break;
      if (!input) piece.slot += piece.rank;
      piece.buffer = Buffer::input;
      break;
    case Operation::all_to_all:
    case Operation::exchange: break;
  }
  return piece;
}

/// Whether a schedule may write a slot of an input buffer: only where an output shares its memory.
constexpr bool writable_input(const Shape& shape, int rank, int slot) {
  if (!shape.in_place) return false;
  switch (shape.operation) {
    case Operation::reduce_scatter: return slot == rank;
    case Operation::reduce:
    case Operation::gather: return rank == shape.root;
    case Operation::scatter: return rank == shape.root && slot == rank;
    case Operation::exclusive_scan: return rank > 0;
    default: return true;
  }
}

}  // namespace meshwise
