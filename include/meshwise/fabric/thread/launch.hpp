// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "meshwise/collective/communicator.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/fabric/launch_options.hpp"
#include "meshwise/fabric/memory/endpoint.hpp"
#include "meshwise/fabric/memory/progress.hpp"
#include "meshwise/fabric/thread/job.hpp"
#include "meshwise/fabric/tuning/job_settings.hpp"
#include "meshwise/topology/topology.hpp"

namespace meshwise {

namespace detail {

/// What `launch` does, whatever the type of the program.
///
/// A template with nothing to choose: it is compiled where it is called, and where many files start ranks, in one of
/// them: `extern template void launch_threads<>(int, const LaunchOptions&, Program);` leaves it to that one.
template <class = void>
void launch_threads(int ranks, const LaunchOptions& options, Program program) {
  if (ranks < 1 || ranks > most_threads) {
    fail("launch", "1 to " + std::to_string(most_threads) + " ranks", std::to_string(ranks),
         "choose another number of ranks");
  }
  const Topology topology = topology_of("launch", ranks, options);
  const auto job = std::make_shared<ThreadJob>(ranks, job_settings(options, "thread", usable_cores()), options.foreign);
  const auto world = MemoryGroup::make(job, topology, options.messages);
  enum class Start { pending, go, cancelled };
  std::atomic<Start> start{Start::pending};

  const auto body = [&](int rank) {
    Backoff backoff(job->crowded());
    while (start.load(std::memory_order_acquire) == Start::pending) backoff.pause();
    if (start.load(std::memory_order_acquire) == Start::cancelled) return;
    std::unique_ptr<ProgressThread> progress;  // ends when the communicator has gone
    Communicator communicator;
    try {
      const auto agenda = std::make_shared<Agenda>(options.progress_thread);
      if (options.progress_thread) {
        progress = std::make_unique<ProgressThread>(agenda, 2 * ranks > job->cores(), rank);
      }
      auto endpoint = std::make_unique<MemoryEndpoint>(world, rank, rank == 0, agenda);
      endpoint->set_deadline(options.deadline);
      endpoint->set_axis(options.name);
      communicator = Communicator(std::move(endpoint));
      program.call(program.object, communicator);
    } catch (...) {
      job->fail(rank, std::current_exception());
    }
  };

  std::vector<std::thread> threads;
  std::string trouble;
  try {
    threads.reserve(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(body, rank);
  } catch (const std::exception& error) {
    trouble = error.what();
  }
  const bool complete = threads.size() == static_cast<std::size_t>(ranks);
  start.store(complete ? Start::go : Start::cancelled, std::memory_order_release);
  for (std::thread& thread : threads) thread.join();
  if (!complete) {
    Report report;
    report.code = Code::out_of_memory;
    report.operation = "launch";
    report.expected = std::to_string(ranks) + " threads";
    report.found = std::to_string(threads.size()) + " (" + trouble + ")";
    report.remedy = "start fewer ranks or raise the limit of threads";
    throw Error(std::move(report));
  }
  job->rethrow();
}

}  // namespace detail

/// Runs `program(Communicator&)` on `ranks` new threads of this process and returns when all have ended.
///
/// ranks: 1 to 4096. program: called once per rank, at the same time, through one shared reference. Ranks that return
/// or throw have left: whoever still waits for them gets an Error.
/// Cost: one thread per rank. Nothing is pinned. The number of usable cores is looked up here and decides how waits
/// spend their time, so restrict the process before. MESHWISE_ALGORITHM, MESHWISE_LANES, MESHWISE_TUNING and
/// MESHWISE_LOG are read here, once for all ranks and all groups that they will form (see Settings).
/// Errors: if a rank throws, all others are aborted; when all have ended, the first cause is thrown once, as it was.
/// `mismatch` if ranks have left a group after different calls and nothing else has shown it before.
/// `invalid_argument` for an impossible number of ranks, another one than the topology has, or an environment that does
/// not say what it should; `out_of_memory` if threads cannot be created; then the
/// program has not been called.
template <class F>
void launch(int ranks, const LaunchOptions& options, F&& program) {
  auto run = [&program](Communicator& communicator) { program(communicator); };
  detail::launch_threads(ranks, options, detail::program_of(run));
}

/// The same with default options.
template <class F>
void launch(int ranks, F&& program) {
  launch(ranks, LaunchOptions{}, std::forward<F>(program));
}

}  // namespace meshwise
