// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/memory/cores.hpp"

#include <doctest/doctest.h>

#include <thread>

TEST_CASE("the usable cores respect the affinity mask of the process") {
  const int all = meshwise::detail::usable_cores();
  CHECK(all >= 1);
  // The mask belongs to the thread: a new one may narrow its own.
  std::thread([] {
    cpu_set_t mask;
    REQUIRE(sched_getaffinity(0, sizeof(mask), &mask) == 0);
    std::size_t first = 0;
    while (!CPU_ISSET(first, &mask)) ++first;
    CPU_ZERO(&mask);
    CPU_SET(first, &mask);
    REQUIRE(sched_setaffinity(0, sizeof(mask), &mask) == 0);
    CHECK(meshwise::detail::usable_cores() == 1);
  }).join();
  CHECK(meshwise::detail::usable_cores() == all);
}
