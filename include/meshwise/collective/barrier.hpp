// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "meshwise/collective/call.hpp"
#include "meshwise/collective/communicator.hpp"

namespace meshwise {

/// Returns when all ranks of the group have called it. What they wrote before is visible afterwards.
///
/// Cost: no data; each rank sees the others enter.
/// Errors: `mismatch`, `timed_out`, `aborted`, `peer_left`, as all_reduce.
inline void barrier(Communicator& communicator, const CollectiveOptions& options = {}) {
  Call call;
  call.verb = "barrier";
  call.shape.operation = Operation::all_reduce;
  call.signature = barrier_signature;
  call.algorithm = options.algorithm;
  call.deadline = options.deadline;
  communicator.run(call);
}

}  // namespace meshwise
