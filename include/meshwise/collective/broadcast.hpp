// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "meshwise/collective/call.hpp"
#include "meshwise/collective/communicator.hpp"
#include "meshwise/collective/detail/arguments.hpp"

namespace meshwise {

/// Copies the root's vector to all ranks.
///
/// data: N elements of any trivially copyable type on every rank, N the same everywhere. root: a rank of the group.
/// Cost per rank: receives N elements, the root none. All ranks share the work, so that no rank may go on before
/// the others have come.
/// Ordering and lifetime: on return the span is the caller's again.
/// Errors: `invalid_argument` for a root outside of the group or a null span; otherwise as all_reduce.
template <detail::Writable Data>
void broadcast(Communicator& communicator, Data&& data, int root = 0, const CollectiveOptions& options = {}) {
  const auto all = detail::writing(data);
  const Endpoint& endpoint = communicator.endpoint("broadcast");
  const std::size_t count = all.size();
  if (root < 0 || root >= endpoint.size()) {
    fail("broadcast", "a root from 0 to " + std::to_string(endpoint.size() - 1), std::to_string(root),
         "pass a rank of this communicator", endpoint.rank());
  }
  detail::require_data("broadcast", "data", all.data(), count, endpoint.rank());
  Call call = detail::span_call("broadcast", Operation::broadcast, all.data(), all.data(), count, options);
  call.shape.root = root;
  call.shape.in_place = true;
  communicator.run(call);
}

}  // namespace meshwise
