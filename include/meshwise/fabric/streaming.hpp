// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "meshwise/collective/call.hpp"
#include "meshwise/schedule/contract.hpp"

namespace meshwise::detail {

/// Bytes of all inputs and outputs of a collective, on all ranks of a group that shares its caches.
///
/// What counts is whether the buffers of this rank are one and the same: the shape of a rooted operation says in place
/// on all ranks, and only the root knows. The answer decides how stores are made, not what they store, so that ranks
/// may differ in it.
inline std::uint64_t footprint(const Call& call) {
  const auto ranks = static_cast<std::uint64_t>(call.shape.ranks);
  const std::uint64_t bytes = call.count * call.element_size;
  const bool apart = call.input != call.output && !(call.shape.in_place && !rooted(call.shape.operation));
  switch (call.shape.operation) {
    case Operation::all_reduce:
    case Operation::inclusive_scan:
    case Operation::exclusive_scan: return (apart ? 2 : 1) * ranks * bytes;
    case Operation::reduce_scatter:
    case Operation::all_gather:
    case Operation::reduce: return ranks * bytes + (apart ? bytes : 0);
    case Operation::broadcast: return ranks * bytes;
    case Operation::all_to_all: return 2 * ranks * bytes;
    case Operation::gather:
    case Operation::scatter:
    case Operation::exchange: return 2 * bytes;
  }
  return 0;
}

/// The footprint from which stores should go around the caches.
///
/// It is the last-level cache, but at most 48 MiB per core: virtual machines report a cache that they share with
/// others. Below it a collective alone would often be faster with streaming stores, from where the private caches end;
/// but the result is read next, and then ordinary stores win. (Measured with 2 cores that report 260 MiB, an
/// all-reduce and a pass over its result: streaming is 12 % slower at a footprint of 64 MiB, even at 128, 19 % faster
/// at 256.)
inline std::uint64_t streaming_threshold(int cores) {
#if defined(_SC_LEVEL3_CACHE_SIZE)
  const long reported = sysconf(_SC_LEVEL3_CACHE_SIZE);
#else
  const long reported = 0;
#endif
  const std::uint64_t fair = static_cast<std::uint64_t>(cores) * (std::uint64_t{48} << 20);
  const auto cache = static_cast<std::uint64_t>(reported > 0 ? reported : 0);
  return cache > 0 && cache < fair ? cache : fair;
}

}  // namespace meshwise::detail
