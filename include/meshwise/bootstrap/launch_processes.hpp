// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "meshwise/bootstrap/detail/process_job.hpp"
#include "meshwise/bootstrap/process_options.hpp"
#include "meshwise/fabric/launch_options.hpp"
#include "meshwise/fabric/shared_memory/join.hpp"
#include "meshwise/fabric/shared_memory/segments.hpp"

namespace meshwise {

/// Runs `program(Communicator&)` on `ranks` new processes, forks of this one that share memory, and returns when all
/// have ended.
///
/// ranks: 1 to 256. program: called once per process; what it changes in ordinary memory is lost with it. Its output is
/// this process' output, its input that of rank 0. It ends by `_exit`: no destructors of static objects run.
/// Cost: a fork per rank. Fork where no other threads run: what they hold (locks of the C library apart) stays held in
/// the ranks.
/// Errors: the first cause, as an Error: what a rank has thrown (of other types than Error the text), `peer_left` where
/// a process was killed or has exited, `timed_out` after `processes.deadline`; the others are ended first. Otherwise as
/// `launch`.
template <class F>
void launch_processes(int ranks, const LaunchOptions& options, F&& program, const ProcessOptions& processes = {}) {
  auto run = [&program](Communicator& communicator) { program(communicator); };
  struct Context {
    const LaunchOptions& options;
    detail::Program program;
  } context{options, detail::program_of(run)};
  detail::launch_processes<>(ranks, processes,
                             {[](void* object, int rank, detail::Segments& segments) {
                                const auto& own = *static_cast<Context*>(object);
                                const int ranks_of_job = segments.ranks();
                                const auto files = segments.release();
                                detail::join_job<>(rank, ranks_of_job, files.control, files.arenas, own.options,
                                                   own.program);
                                return 0;
                              },
                              &context});
}

/// The same with default options.
template <class F>
void launch_processes(int ranks, F&& program) {
  launch_processes(ranks, LaunchOptions{}, std::forward<F>(program));
}

}  // namespace meshwise
