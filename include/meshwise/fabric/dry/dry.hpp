// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "meshwise/collective/communicator.hpp"
#include "meshwise/fabric/dry/endpoint.hpp"

namespace meshwise {

/// The same ranks without data: tensors of a mesh that is made of it have extents and a size that is counted, but no
/// memory, so that a program shows what it allocates and sends for sizes that no machine at hand could hold.
///
/// The heap of such a mesh counts and reserves addresses; `local()` of its tensors is empty, whatever their extents.
/// Collectives on tensors count as calls and volume, and move nothing; those on the program's own memory, such as
/// `all_reduce(world, numbers)` and what the library compares between ranks, are carried out.
/// communicator: of any fabric; it becomes empty. Cost: see ReservedMemory; conversions cost their call.
/// What runs dry: construction, conversions that are one collective or a contiguous cut, element-wise operations, the
/// optimizers, and what consists of them, such as `Zero` and gradient buckets. What computes with elements by itself
/// (contractions, norms, attention), or wants a value, touches memory that is not there, which ends the program.
/// Ordering, errors: as before. Lifetime: tensors do not outlive the communicator.
/// Errors: `invalid_argument` for an empty communicator.
inline Communicator dry(Communicator&& communicator) {
  return Communicator(
      Owned<Endpoint>(new detail::DryEndpoint(communicator.release("dry"), std::make_shared<detail::DryRank>())));
}

}  // namespace meshwise
