// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "meshwise/collective/communicator.hpp"
#include "meshwise/core/deadline.hpp"
#include "meshwise/core/detail/mix.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/core/wait.hpp"
#include "meshwise/fabric/launch_options.hpp"
#include "meshwise/fabric/memory/endpoint.hpp"
#include "meshwise/fabric/memory/group.hpp"
#include "meshwise/fabric/memory/progress.hpp"
#include "meshwise/fabric/shared_memory/attach.hpp"
#include "meshwise/fabric/shared_memory/job.hpp"
#include "meshwise/fabric/shared_memory/space.hpp"
#include "meshwise/fabric/tuning/job_settings.hpp"
#include "meshwise/schedule/settings.hpp"

namespace meshwise::detail {

/// Waits for something that a rank of a job does before the others can go on.
template <class Ready>
void await_rank(Space& space, int rank, const char* what, double seconds, const Ready& ready) {
  Deadline deadline(seconds);
  Backoff backoff(space.crowded());
  while (!ready()) {
    if (!backoff.pause()) continue;
    Report report;
    report.code = Code::timed_out;
    report.operation = "join";
    report.rank = space.rank();
    report.ranks = {rank};
    report.expected =
        std::string(what) + " of rank " + std::to_string(rank) + " within " + std::to_string(seconds) + " s";
    report.remedy = "look at what that rank does";
    if (space.control().failed.load(std::memory_order_acquire) != 0) throw Error(SharedMemoryJob::cause_of(space));
    if (space.dead(rank) && !ready()) {
      report.code = Code::peer_left;
      report.found = "that it " + space.how_it_ended(rank);
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
      control.settings = job_settings(options, "shared_memory", space.cores());
    } catch (...) {
      trouble = std::current_exception();
    }
    control.settings_set.store(1, std::memory_order_release);
  } else {
    await_rank(space, 0, "the settings", options.deadline,
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
  await_rank(space, 0, "the world", options.deadline, [&] { return place.load(std::memory_order_acquire) != 0; });
  auto* const state = reinterpret_cast<GroupState*>(place.load(std::memory_order_acquire));
  if (!space.addressable(state, sizeof(GroupState)) || state->size != space.ranks()) {
    fail("join", "what " + std::to_string(space.ranks()) + " ranks share", "something else",
         "start all ranks with the same version of the library", space.rank());
  }
  return MemoryGroup::attach(job, *state, topology, options.messages);
}

/// Finds out whether every rank can read and write the private memory of every other one, by doing it (what it writes
/// is there already): the same answer on all.
/// MESHWISE_ATTACH=0 in the environment of any rank means that it cannot.
inline bool agree_to_attach(Space& space, double seconds) {
  if (space.ranks() < 2) return false;
  const auto record = [&](int rank) -> RankRecord& { return space.control().record(rank); };
  RankRecord& own = record(space.rank());
  std::uint64_t word =
      mix(static_cast<std::uint64_t>(monotonic_nanoseconds()), static_cast<std::uint64_t>(own.pid.load()));
  own.shown.store(reinterpret_cast<std::uintptr_t>(&word), std::memory_order_relaxed);
  own.word.store(word, std::memory_order_relaxed);
  own.tried.store(1, std::memory_order_release);
  const char* const wish = std::getenv("MESHWISE_ATTACH");
  bool works = wish == nullptr || std::string_view(wish) != "0";
  for (int peer = 0; peer < space.ranks(); ++peer) {
    const RankRecord& other = record(peer);
    await_rank(space, peer, "a word to read", seconds,
               [&] { return other.tried.load(std::memory_order_acquire) >= 1; });
    if (peer == space.rank() || !works) continue;
    std::uint64_t read = 0;
    works = attach_and_read(static_cast<pid_t>(other.pid.load(std::memory_order_relaxed)), &read,
                            reinterpret_cast<const void*>(other.shown.load(std::memory_order_relaxed)), sizeof(read)) &&
            read == other.word.load(std::memory_order_relaxed) &&
            attach_and_write(static_cast<pid_t>(other.pid.load(std::memory_order_relaxed)),
                             reinterpret_cast<void*>(other.shown.load(std::memory_order_relaxed)), &read, sizeof(read));
  }
  own.tried.store(works ? 3 : 2, std::memory_order_release);
  // The own word stays until all have tried it.
  for (int peer = 0; peer < space.ranks(); ++peer) {
    const RankRecord& other = record(peer);
    await_rank(space, peer, "to hear whether it reads the memory of all", seconds,
               [&] { return other.tried.load(std::memory_order_acquire) >= 2; });
    works = works && other.tried.load(std::memory_order_relaxed) == 3;
  }
  return works;
}

/// Runs a program as one rank of a job of processes. descriptors: of the control segment and of every arena; they are
/// this function's to close.
///
/// Errors: what the program throws, after the others have been told; those of Space; `peer_left` and `timed_out` where
/// rank 0 does not come.
template <class = void>
void join_job(int rank, int ranks, int control, const std::vector<int>& arenas, const LaunchOptions& options,
              Program program) {
  const Topology topology = topology_of("join", ranks, options);
  auto space = std::make_unique<Space>(rank, ranks, control, arenas, options.deadline);
  std::exception_ptr trouble;
  const Settings settings = common_settings(*space, options, trouble);
  const auto job = std::make_shared<SharedMemoryJob>(std::move(space), settings);
  const auto agenda = std::make_shared<Agenda>(options.progress_thread);
  std::unique_ptr<ProgressThread> progress;  // ends when the communicator has gone
  Communicator world;                        // and that goes when the others can know why
  try {
    if (trouble) std::rethrow_exception(trouble);
    job->set_attaches(agree_to_attach(job->space(), options.deadline));
    if (options.progress_thread) {
      progress = std::make_unique<ProgressThread>(agenda, 2 * ranks > job->cores(), rank);
    }
    auto endpoint = std::make_unique<MemoryEndpoint>(common_world(job, options, topology), rank, rank == 0, agenda);
    endpoint->set_deadline(options.deadline);
    endpoint->set_axis(options.name);
    world = Communicator(std::move(endpoint));
    program.call(program.object, world);
  } catch (...) {
    job->fail(rank, std::current_exception());
    throw;
  }
}

}  // namespace meshwise::detail
