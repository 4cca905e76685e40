// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "meshwise/collective/call.hpp"

namespace meshwise {

/// The elements of a block, from a slot that holds it in the operation's contract.
///
/// With regions that describe one rank's buffers only (`own_bytes`), blocks of that rank's own can be asked for.
inline std::size_t block_size(const Call& call, int block) {
  const Shape& shape = call.shape;
  const auto size = [&](Buffer buffer, int rank, int slot) {
    return call.regions.locate(call.regions.context, shape, buffer, rank, slot).size();
  };
  switch (shape.operation) {
    case Operation::all_reduce:
    case Operation::all_gather:
    case Operation::broadcast: return size(Buffer::output, 0, block);
    case Operation::reduce:
    case Operation::inclusive_scan:
    case Operation::exclusive_scan: return size(Buffer::input, 0, block);
    case Operation::reduce_scatter:
    case Operation::scatter: return size(Buffer::output, block, 0);
    case Operation::gather: return size(Buffer::input, block, 0);
    case Operation::all_to_all: return size(Buffer::input, block / shape.ranks, block % shape.ranks);
    case Operation::exchange: {
      const Routes& routes = *shape.routes;
      for (const Routes::Place& place : routes.holders[static_cast<std::size_t>(block)]) {
        return size(Buffer::input, place.rank, place.slot);
      }
      return 0;
    }
  }
  return 0;
}

/// Bytes that one rank receives when the operation is done with the least traffic that its result needs.
///
/// With N elements in all, and n of them in the rank's own block: all_gather N - n; reduce_scatter (p - 1) n;
/// all_reduce both; broadcast N on all ranks but the root; reduce (p - 1) N at the root; gather N - n at the root;
/// scatter n on all ranks but the root; scans N on all ranks but rank 0; all_to_all the blocks that come from others;
/// exchange the blocks that the rank wants and does not hold. Summed over the ranks these are (p - 1) N, (p - 1) N,
/// 2 (p - 1) N, (p - 1) N, (p - 1) N, N - n, N - n and (p - 1) N, however uneven the blocks.
/// Cost: one region, or one per slot for all_to_all and exchange. A group of one needs nothing.
inline std::uint64_t volume(const Call& call, int rank) {
  const Shape& shape = call.shape;
  if (shape.ranks == 1 || call.count == 0) return 0;
  const auto others = static_cast<std::uint64_t>(shape.ranks - 1);
  const auto output = [&](int slot) {
    return call.regions.locate(call.regions.context, shape, Buffer::output, rank, slot).size();
  };
  const bool root = rank == shape.root;
  std::uint64_t elements = 0;
  switch (shape.operation) {
    case Operation::all_reduce: {
      const std::uint64_t own = block_size(call, rank);
      elements = others * own + (call.count - own);
      break;
    }
    case Operation::reduce_scatter: elements = others * block_size(call, rank); break;
    case Operation::all_gather: elements = call.count - block_size(call, rank); break;
    case Operation::broadcast: elements = root ? 0 : call.count; break;
    case Operation::reduce: elements = root ? others * call.count : 0; break;
    case Operation::gather: elements = root ? call.count - block_size(call, rank) : 0; break;
    case Operation::scatter: elements = root ? 0 : block_size(call, rank); break;
    case Operation::inclusive_scan:
    case Operation::exclusive_scan: elements = rank == 0 ? 0 : call.count; break;
    case Operation::all_to_all:
      for (int peer = 0; peer < shape.ranks; ++peer) {
        if (peer != rank) elements += output(peer);
      }
      break;
    case Operation::exchange: {
      const std::vector<int>& wanted = shape.routes->wanted[static_cast<std::size_t>(rank)];
      for (std::size_t slot = 0; slot < wanted.size(); ++slot) {
        bool held = false;
        for (const Routes::Place& place : shape.routes->holders[static_cast<std::size_t>(wanted[slot])]) {
          held = held || place.rank == rank;
        }
        if (!held) elements += output(static_cast<int>(slot));
      }
      break;
    }
  }
  return elements * call.element_size;
}

}  // namespace meshwise
