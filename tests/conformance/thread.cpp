// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "../support/launch.hpp"
#include "../support/sanitized.hpp"
#include "list.hpp"

namespace {

/// Threads of this process, which reach each other's memory or only send messages.
class Threads final : public conformance::World {
 public:
  explicit Threads(bool messages, bool foreign = false) : messages_(messages), foreign_(foreign) {}

  const char* name() const override {
    return messages_ ? "threads with messages" : foreign_ ? "threads with foreign buffers" : "threads with memory";
  }

  std::vector<std::string> run(const meshwise::Topology& topology, conformance::Program& program) override {
    std::vector<std::string> reports(static_cast<std::size_t>(topology.ranks()));
    meshwise::LaunchOptions options;
    options.deadline = 60;
    options.messages = messages_;
    options.foreign = foreign_;
    options.topology = topology;
    meshwise::launch(topology.ranks(), options, [&](meshwise::Communicator& communicator) {
      const auto rank = static_cast<std::size_t>(communicator.rank());
      reports[rank] = program.run(communicator);
    });
    return reports;
  }

 private:
  bool messages_;
  bool foreign_;
};

void run_list_on(bool messages, bool foreign = false) {
  Threads world(messages, foreign);
  const conformance::Outcome outcome = conformance::run_list(world, foreign && building::sanitized ? 2 : 1);
  for (const std::string& failure : outcome.failures) {
    FAIL_CHECK(failure);
  }
  CHECK(outcome.cases > 0);
}

}  // namespace

TEST_CASE("threads with memory conform") { run_list_on(false); }
TEST_CASE("threads with foreign buffers conform") { run_list_on(false, true); }
TEST_CASE("threads with messages conform") { run_list_on(true); }
