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
/// It is the last-level cache, but at most 20 MiB per core: virtual machines report a cache that they share with
/// others. A footprint that is well above the private caches costs a read of every line that ordinary stores are going
/// to replace, which is what streaming saves. (Measured with 2 cores of 2 MiB each that report 260 MiB, vectors of
/// 16 MiB: the all-gather and the all-reduce out of place take half the time on 2 ranks, broadcast and all-gather half
/// on 4; a pass over the result right afterwards is slower in return, both together 12 % at a footprint of 64 MiB and
/// even at 128.)
inline std::uint64_t streaming_threshold(int cores) {
#if defined(_SC_LEVEL3_CACHE_SIZE)
  const long reported = sysconf(_SC_LEVEL3_CACHE_SIZE);
#else
  const long reported = 0;
#endif
  const std::uint64_t fair = static_cast<std::uint64_t>(cores) * (std::uint64_t{20} << 20);
  const auto cache = static_cast<std::uint64_t>(reported > 0 ? reported : 0);
  return cache > 0 && cache < fair ? cache : fair;
}

}  // namespace meshwise::detail
