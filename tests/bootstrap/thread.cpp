// SPDX-License-Identifier: Apache-2.0
#include "meshwise/bootstrap/thread.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>

#include "meshwise/bootstrap/run.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/collective/communicator.hpp"

TEST_CASE("threads fit everywhere, and share what the program refers to") {
  CHECK(meshwise::thread::fits());
  const pid_t here = getpid();
  std::atomic<int> ranks{0};
  meshwise::RunOptions three;
  three.ranks = 3;
  CHECK(meshwise::run<meshwise::fabrics<meshwise::thread>>(three, [&](meshwise::Communicator& world) {
          barrier(world);
          if (getpid() == here && world.size() == 3) ++ranks;
        }) == 0);
  CHECK(ranks == 3);
}
