// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/delaying/delayed.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "../support/launch.hpp"
#include "list.hpp"

namespace {

/// Threads of this process over a slow network: memory or messages underneath, and data that lands when it may.
class DelayedThreads final : public conformance::World {
 public:
  const char* name() const override { return "threads with delays"; }

  std::vector<std::string> run(const meshwise::Topology& topology, conformance::Program& program) override {
    std::vector<std::string> reports(static_cast<std::size_t>(topology.ranks()));
    ++launches_;
    meshwise::LaunchOptions options;
    options.deadline = 60;
    options.messages = launches_ % 2 == 0;
    options.topology = topology;
    meshwise::Delays delays;
    delays.jitter = 1e-4;
    delays.seed = launches_;
    delays.landing = meshwise::Landing::mixed;
    meshwise::launch(topology.ranks(), options, [&](meshwise::Communicator& communicator) {
      const auto rank = static_cast<std::size_t>(communicator.rank());
      communicator = meshwise::delayed(std::move(communicator), delays);
      reports[rank] = program.run(communicator);
    });
    return reports;
  }

 private:
  std::uint64_t launches_ = 0;
};

}  // namespace

TEST_CASE("threads with delays conform") {
  DelayedThreads world;
  const conformance::Outcome outcome = conformance::run_list(world, 8);
  for (const std::string& failure : outcome.failures) {
    FAIL_CHECK(failure);
  }
  CHECK(outcome.cases > 0);
}
