// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "meshwise/collective/call.hpp"

namespace meshwise {

/// The elements of a block, from the slot that holds it in the operation's contract.
inline std::size_t block_size(const Call& call, int block) {
  const Shape& shape = call.shape;
  const auto size = [&](Buffer buffer, int rank, int slot) {
    return call.regions.locate(call.regions.context, shape, buffer, rank, slot).size();
  };
  switch (shape.operation) {
    case Operation::all_reduce:
    case Operation::all_gather:
    case Operation::broadcast: return size(Buffer::output, 0, block);
    case Operation::reduce_scatter: return size(Buffer::output, block, 0);
    case Operation::all_to_all: return size(Buffer::input, block / shape.ranks, block % shape.ranks);
  }
  return 0;
}

/// Bytes that one rank receives when the operation is done with the least traffic that its result needs.
///
/// With N elements in all, and n of them in the rank's own block: all_gather N - n; reduce_scatter (p - 1) n;
/// all_reduce both; broadcast N on all ranks but the root; all_to_all the blocks that come from others. Summed over
/// the ranks these are (p - 1) N, (p - 1) N, 2 (p - 1) N, (p - 1) N however uneven the blocks.
/// Cost: one region, or p of them for all_to_all. A group of one needs nothing.
inline std::uint64_t volume(const Call& call, int rank) {
  const Shape& shape = call.shape;
  if (shape.ranks == 1 || call.count == 0) return 0;
  const auto others = static_cast<std::uint64_t>(shape.ranks - 1);
  std::uint64_t elements = 0;
  switch (shape.operation) {
    case Operation::all_reduce: {
      const std::uint64_t own = block_size(call, rank);
      elements = others * own + (call.count - own);
      break;
    }
    case Operation::reduce_scatter: elements = others * block_size(call, rank); break;
    case Operation::all_gather: elements = call.count - block_size(call, rank); break;
    case Operation::broadcast: elements = rank == shape.root ? 0 : call.count; break;
    case Operation::all_to_all:
      for (int peer = 0; peer < shape.ranks; ++peer) {
        if (peer != rank) elements += block_size(call, peer * shape.ranks + rank);
      }
      break;
  }
  return elements * call.element_size;
}

}  // namespace meshwise
