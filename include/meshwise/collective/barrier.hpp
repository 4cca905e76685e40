// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "meshwise/collective/detail/verbs.hpp"
#include "meshwise/core/detail/shared.hpp"

namespace meshwise {

namespace detail {

inline void describe_barrier(Request& request, const CollectiveOptions& options) {
  request.call.shape.operation = Operation::all_reduce;
  request.call.signature = barrier_signature;
  request.call.deadline = options.deadline;
}

inline Shared<RequestTask> barrier_task(const char* verb, Communicator& communicator,
                                        const CollectiveOptions& options) {
  Shared<RequestTask> task(new RequestTask(communicator.endpoint(verb), verb));
  describe_barrier(task->request, options);
  return task;
}

}  // namespace detail

/// Returns when all ranks of the group have called it. What they wrote before is visible afterwards.
///
/// options: only the deadline matters.
/// Cost: no data; each rank sees the others enter.
/// Errors: `mismatch`, `timed_out`, `aborted`, `peer_left`, as all_reduce.
inline void barrier(Communicator& communicator, const CollectiveOptions& options = {}) {
  detail::Request request(communicator.endpoint("barrier"), communicator.workspace(), "barrier");
  detail::describe_barrier(request, options);
  request.run();
}

/// Begins a barrier: the others may pass it once all have begun it. See Pending.
inline Pending<void> start_barrier(Communicator& communicator, const CollectiveOptions& options = {}) {
  auto task = detail::barrier_task("start_barrier", communicator, options);
  task->start();
  return {std::move(task), [](detail::Task&) {}};
}

/// A barrier to be run many times. See Prepared.
inline Prepared<void> prepare_barrier(Communicator& communicator, const CollectiveOptions& options = {}) {
  return {detail::barrier_task("prepare_barrier", communicator, options), [](detail::Task&) {}};
}

/// A barrier that tells who is late: if not all ranks have come in time, every rank that came gets an Error whose
/// `report().ranks` names those that have not.
///
/// seconds: how long this rank waits, more than 0. May be met by `barrier` on other ranks.
/// Cost: as barrier.
/// Errors: `timed_out` with the ranks that are late (it poisons the group); `invalid_argument` for another time.
inline void monitored_barrier(Communicator& communicator, double seconds) {
  detail::Request request(communicator.endpoint("monitored_barrier"), communicator.workspace(), "monitored_barrier");
  if (!(seconds > 0)) {
    fail("monitored_barrier", "a time above 0 seconds", std::to_string(seconds),
         "say how long late ranks are waited for", communicator.rank());
  }
  CollectiveOptions options;
  options.deadline = seconds;
  detail::describe_barrier(request, options);
  request.run();
}

}  // namespace meshwise
