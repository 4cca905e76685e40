// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/collective/communicator.hpp"
#include "meshwise/core/deadline.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/core/wait.hpp"
#include "meshwise/fabric/launch_options.hpp"
#include "meshwise/fabric/memory/endpoint.hpp"
#include "meshwise/fabric/memory/group.hpp"
#include "meshwise/fabric/shared_memory/job.hpp"
#include "meshwise/fabric/shared_memory/space.hpp"
#include "meshwise/schedule/settings.hpp"

namespace meshwise::detail {

/// Waits for something that rank 0 of a job does before the others can go on.
template <class Ready>
void await_first_rank(Space& space, const char* what, double seconds, const Ready& ready) {
  Deadline deadline(seconds);
  Backoff backoff(space.ranks() > space.cores());
  while (!ready()) {
    if (!backoff.pause()) continue;
    Report report;
    report.code = Code::timed_out;
    report.operation = "join";
    report.rank = space.rank();
    report.ranks = {0};
    report.expected = std::string(what) + " of rank 0 within " + std::to_string(seconds) + " s";
    report.remedy = "look at what that rank does";
    if (space.control().failed.load(std::memory_order_acquire) != 0) throw Error(SharedMemoryJob::cause_of(space));
    if (space.dead(0) && !ready()) {
      report.code = Code::peer_left;
      report.found = "that its process has ended";
      throw Error(std::move(report));
    }
    if (deadline.expired() && !ready()) {
      report.found = "rank " + std::to_string(space.rank()) + " still waiting";
      throw Error(std::move(report));
    }
  }
}

/// What is forced upon the selectors of all ranks: what rank 0 says. trouble: why it cannot.
inline Settings common_settings(Space& space, const LaunchOptions& options, std::exception_ptr& trouble) {
  Control& control = space.control();
  if (space.rank() == 0) {
    try {
      control.settings = options.settings ? *options.settings : Settings::from_environment();
    } catch (...) {
      trouble = std::current_exception();
    }
    control.settings_set.store(1, std::memory_order_release);
  } else {
    await_first_rank(space, "the settings", options.deadline,
                     [&] { return control.settings_set.load(std::memory_order_acquire) != 0; });
  }
  return control.settings;
}

/// What the ranks of the world share, which rank 0 makes.
inline std::shared_ptr<MemoryGroup> common_world(const std::shared_ptr<SharedMemoryJob>& job,
                                                 const LaunchOptions& options, const Topology& topology) {
  Space& space = job->space();
  std::atomic<std::uint64_t>& place = space.control().world;
  if (space.rank() == 0) {
    auto world = MemoryGroup::make(job, topology, options.messages);
    place.store(reinterpret_cast<std::uintptr_t>(&world->state()), std::memory_order_release);
    return world;
  }
  await_first_rank(space, "the world", options.deadline, [&] { return place.load(std::memory_order_acquire) != 0; });
  auto* const state = reinterpret_cast<GroupState*>(place.load(std::memory_order_acquire));
  if (!space.addressable(state, sizeof(GroupState)) || state->size != space.ranks()) {
    fail("join", "what " + std::to_string(space.ranks()) + " ranks share", "something else",
         "start all ranks with the same version of the library", space.rank());
  }
  return MemoryGroup::attach(job, *state, topology, options.messages);
}

/// Runs a program as one rank of a job of processes. descriptors: of the control segment and of every arena; they are
/// this function's to close.
///
/// Errors: what the program throws, after the others have been told; those of Space; `peer_left` and `timed_out` where
/// rank 0 does not come.
template <class = void>
void join(int rank, int ranks, int control, const std::vector<int>& arenas, const LaunchOptions& options,
          Program program) {
  const Topology topology = topology_of("join", ranks, options);
  auto space = std::make_unique<Space>(rank, ranks, control, arenas, options.deadline);
  std::exception_ptr trouble;
  const Settings settings = common_settings(*space, options, trouble);
  const auto job = std::make_shared<SharedMemoryJob>(std::move(space), settings);
  try {
    if (trouble) std::rethrow_exception(trouble);
    auto endpoint = std::make_unique<MemoryEndpoint>(common_world(job, options, topology), rank, rank == 0);
    endpoint->set_deadline(options.deadline);
    endpoint->set_axis(options.name);
    Communicator world(std::move(endpoint));
    program.call(program.object, world);
  } catch (...) {
    job->fail(rank, std::current_exception());
    throw;
  }
}

}  // namespace meshwise::detail
