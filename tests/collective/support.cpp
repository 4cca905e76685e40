// SPDX-License-Identifier: Apache-2.0
// What the tests of this room share and need not compile each: the ranks' threads.
#include "support.hpp"

#include "../support/launch.hpp"
#include "meshwise/bootstrap/launch_processes.hpp"

namespace test {

namespace {

LaunchOptions options_of(const Setup& setup) {
  LaunchOptions options;
  options.messages = setup.messages;
  options.deadline = setup.deadline;
  options.name = setup.name;
  options.progress_thread = setup.progress_thread;
  return options;
}

}  // namespace

void run_ranks(int ranks, const Setup& setup, void (*program)(const void* context, Communicator& communicator),
               const void* context) {
  meshwise::launch(ranks, options_of(setup), [&](Communicator& communicator) { program(context, communicator); });
}

void run_forks(int ranks, const Setup& setup, void (*program)(const void* context, Communicator& communicator),
               const void* context) {
  meshwise::launch_processes(ranks, options_of(setup),
                             [&](Communicator& communicator) { program(context, communicator); });
}

}  // namespace test
