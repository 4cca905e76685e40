// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "../support/sanitized.hpp"
#include "list.hpp"
#include "meshwise/bootstrap/launch_processes.hpp"

namespace {

/// Room for what each rank has to say, in memory that forks share.
class Board {
 public:
  explicit Board(int ranks)
      : bytes_(room * static_cast<std::size_t>(ranks)),
        memory_(static_cast<char*>(
            mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
    REQUIRE(memory_ != MAP_FAILED);
  }
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;
  ~Board() { munmap(memory_, bytes_); }

  void put(int rank, const std::string& text) {
    std::memcpy(memory_ + room * static_cast<std::size_t>(rank), text.data(), std::min(text.size(), room - 1));
  }
  std::string get(std::size_t rank) const { return memory_ + room * rank; }

 private:
  static constexpr std::size_t room = std::size_t{16} << 20;

  std::size_t bytes_;
  char* memory_;
};

/// Processes that share memory.
class Processes final : public conformance::World {
 public:
  explicit Processes(bool messages) : messages_(messages) {}

  const char* name() const override { return messages_ ? "processes with messages" : "processes with memory"; }

  std::vector<std::string> run(const meshwise::Topology& topology, conformance::Program& program) override {
    meshwise::LaunchOptions options;
    options.deadline = 60;
    options.messages = messages_;
    options.topology = topology;
    Board board(topology.ranks());
    std::string trouble;
    try {
      meshwise::launch_processes(topology.ranks(), options, [&](meshwise::Communicator& communicator) {
        board.put(communicator.rank(), program.run(communicator));
      });
    } catch (const meshwise::Error& error) {
      trouble = std::string("failed: ") + error.what() + "\n";
    }
    std::vector<std::string> reports;
    for (int rank = 0; rank < topology.ranks(); ++rank) {
      reports.push_back(board.get(static_cast<std::size_t>(rank)) + trouble);
    }
    return reports;
  }

 private:
  bool messages_;
};

void run_list_on(bool messages) {
  Processes world(messages);
  // A sanitizer sees the same engine on threads.
  const conformance::Outcome outcome = conformance::run_list(world, building::sanitized ? 4 : 1);
  for (const std::string& failure : outcome.failures) {
    FAIL_CHECK(failure);
  }
  CHECK(outcome.cases > 0);
}

}  // namespace

TEST_CASE("processes with memory conform") { run_list_on(false); }
TEST_CASE("processes with messages conform") { run_list_on(true); }
