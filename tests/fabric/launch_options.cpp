// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/launch_options.hpp"

#include <doctest/doctest.h>

#include <limits>

using namespace meshwise;

TEST_CASE("options without a topology mean that all ranks reach each other alike") {
  CHECK(detail::topology_of("launch", 5, {}) == Topology::flat(5));
  LaunchOptions options;
  options.topology = Topology::flat(3);
  CHECK(detail::topology_of("launch", 3, options) == Topology::flat(3));
}

TEST_CASE("options that cannot be are refused, whoever launches") {
  LaunchOptions options;
  options.topology = Topology::flat(3);
  CHECK_THROWS_WITH_AS(detail::topology_of("join", 4, options),
                       "join: expected a topology of 4 ranks, found 3; describe the ranks that are started", Error);
  options = {};
  for (const double deadline : {-1.0, -1e-300, std::numeric_limits<double>::quiet_NaN()}) {
    options.deadline = deadline;
    CHECK_THROWS_AS(detail::topology_of("launch", 4, options), Error);
  }
  options.deadline = 0;
  CHECK(detail::topology_of("launch", 1, options).ranks() == 1);
}

TEST_CASE("a program is called with its communicator, whatever it is") {
  int calls = 0;
  auto run = [&](Communicator& world) { calls += world.empty() ? 1 : 100; };
  const detail::Program program = detail::program_of(run);
  Communicator none;
  program.call(program.object, none);
  CHECK(calls == 1);
}
