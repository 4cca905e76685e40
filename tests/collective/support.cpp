// SPDX-License-Identifier: Apache-2.0
// What the tests of this room share and need not compile each: the ranks' threads.
#include "support.hpp"

#include "../support/launch.hpp"

namespace test {

void run_ranks(int ranks, const Setup& setup, void (*program)(const void* context, Communicator& communicator),
               const void* context) {
  LaunchOptions options;
  options.messages = setup.messages;
  options.deadline = setup.deadline;
  options.name = setup.name;
  meshwise::launch(ranks, options, [&](Communicator& communicator) { program(context, communicator); });
}

}  // namespace test
