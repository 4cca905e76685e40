// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/delaying/launch.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <string>

#include "meshwise/collective/barrier.hpp"

using namespace meshwise;

TEST_CASE("ranks are launched with their options, and delayed") {
  LaunchOptions options;
  options.name = "all";
  options.deadline = 7;
  Delays delays;
  delays.alpha = 0.01;
  std::atomic<int> ranks{0};
  launch_delayed(3, options, delays, [&](Communicator& communicator) {
    CHECK(communicator.name() == "all");
    CHECK(communicator.deadline() == 7);
    const std::int64_t begin = monotonic_nanoseconds();
    barrier(communicator);
    CHECK(monotonic_nanoseconds() - begin >= 10'000'000);
    ++ranks;
  });
  CHECK(ranks == 3);
}

TEST_CASE("what a rank throws comes out once, and impossible launches are refused") {
  CHECK_THROWS_WITH_AS(launch_delayed(2, Delays(),
                                      [](Communicator& communicator) {
                                        if (communicator.rank() == 1) throw std::runtime_error("mine");
                                        barrier(communicator);
                                      }),
                       "mine", std::runtime_error);
  Delays delays;
  delays.jitter = -1;
  bool called = false;
  CHECK_THROWS_WITH_AS(launch_delayed(2, delays, [&](Communicator&) { called = true; }),
                       doctest::Contains("launch_delayed: expected jitter >= 0"), Error);
  CHECK_THROWS_AS(launch_delayed(0, Delays(), [&](Communicator&) { called = true; }), Error);
  CHECK(!called);
}
