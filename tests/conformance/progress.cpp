// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "../support/launch.hpp"
#include "list.hpp"
#include "meshwise/bootstrap/launch_processes.hpp"

namespace {

/// Ranks beside each of which a progress thread goes on with what is in flight.
class Progressing final : public conformance::World {
 public:
  Progressing(bool processes, bool messages) : processes_(processes), messages_(messages) {}

  const char* name() const override {
    static constexpr const char* names[] = {"progressing threads with memory", "progressing threads with messages",
                                            "progressing processes with memory", "progressing processes with messages"};
    return names[(processes_ ? 2 : 0) + (messages_ ? 1 : 0)];
  }

  std::vector<std::string> run(const meshwise::Topology& topology, conformance::Program& program) override {
    meshwise::LaunchOptions options;
    options.deadline = 60;
    options.messages = messages_;
    options.topology = topology;
    options.progress_thread = true;
    const int ranks = topology.ranks();
    std::vector<std::string> reports(static_cast<std::size_t>(ranks));
    if (!processes_) {
      meshwise::launch(ranks, options, [&](meshwise::Communicator& communicator) {
        reports[static_cast<std::size_t>(communicator.rank())] = program.run(communicator);
      });
      return reports;
    }
    // What each rank has to say, in memory that forks share.
    constexpr std::size_t room = std::size_t{4} << 20;
    const std::size_t bytes = room * reports.size();
    auto* const board = static_cast<char*>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    REQUIRE(board != MAP_FAILED);
    std::string trouble;
    try {
      meshwise::launch_processes(ranks, options, [&](meshwise::Communicator& communicator) {
        const std::string report = program.run(communicator);
        std::memcpy(board + room * static_cast<std::size_t>(communicator.rank()), report.data(),
                    std::min(report.size(), room - 1));
      });
    } catch (const meshwise::Error& error) {
      trouble = std::string("failed: ") + error.what() + "\n";
    }
    for (std::size_t rank = 0; rank < reports.size(); ++rank) reports[rank] = board + room * rank + trouble;
    munmap(board, bytes);
    return reports;
  }

 private:
  bool processes_;
  bool messages_;
};

void run_list_on(bool processes, bool messages) {
  Progressing world(processes, messages);
  const conformance::Outcome outcome = conformance::run_list(world, 12);
  for (const std::string& failure : outcome.failures) {
    FAIL_CHECK(failure);
  }
  CHECK(outcome.cases > 0);
}

}  // namespace

TEST_CASE("threads with memory conform while progress threads go on") { run_list_on(false, false); }
TEST_CASE("threads with messages conform while progress threads go on") { run_list_on(false, true); }
TEST_CASE("processes with memory conform while progress threads go on") { run_list_on(true, false); }
TEST_CASE("processes with messages conform while progress threads go on") { run_list_on(true, true); }
