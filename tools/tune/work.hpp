// SPDX-License-Identifier: Apache-2.0
// The operations that meshwise-tune measures.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "meshwise/collective/all_gather.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/all_to_all.hpp"
#include "meshwise/collective/broadcast.hpp"
#include "meshwise/collective/communicator.hpp"
#include "meshwise/collective/gather.hpp"
#include "meshwise/collective/reduce.hpp"
#include "meshwise/collective/reduce_scatter.hpp"
#include "meshwise/collective/scan.hpp"
#include "meshwise/collective/scatter.hpp"

namespace tune {

/// Two buffers of one rank.
struct Buffers {
  std::span<float> in, out;
};

/// The elements whose bytes are those of the size: on the larger side of a rank's buffers, in parts of equal size.
inline std::size_t elements(std::uint64_t bytes, int ranks) {
  const auto parts = static_cast<std::size_t>(ranks);
  const std::size_t count = static_cast<std::size_t>(bytes) / sizeof(float);
  return std::max(count / parts, std::size_t{1}) * parts;
}

inline void perform(meshwise::Communicator& world, meshwise::Operation operation, const Buffers& buffers,
                    const meshwise::CollectiveOptions& options) {
  using meshwise::Operation;
  const std::span<float> in = buffers.in, out = buffers.out;
  const std::size_t part = in.size() / static_cast<std::size_t>(world.size());
  const bool root = world.rank() == 0;
  const std::span<float> none;
  switch (operation) {
    case Operation::all_reduce: return meshwise::all_reduce(world, in, out, options);
    case Operation::reduce_scatter: return meshwise::reduce_scatter(world, in, out.first(part), options);
    case Operation::all_gather: return meshwise::all_gather(world, in.first(part), out, options);
    case Operation::all_to_all: return meshwise::all_to_all(world, in, out, options);
    case Operation::broadcast: return meshwise::broadcast(world, out, 0, options);
    case Operation::reduce: return meshwise::reduce(world, in, root ? out : none, 0, options);
    case Operation::gather: return meshwise::gather(world, in.first(part), root ? out : none, 0, options);
    case Operation::scatter: return meshwise::scatter(world, root ? in : none, out.first(part), 0, options);
    case Operation::inclusive_scan: return meshwise::inclusive_scan(world, in, out, options);
    case Operation::exclusive_scan: return meshwise::exclusive_scan(world, in, out, options);
    case Operation::exchange: return;
  }
}

}  // namespace tune
