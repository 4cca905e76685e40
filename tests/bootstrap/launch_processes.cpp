// SPDX-License-Identifier: Apache-2.0
// What ranks see and what their failure becomes; how processes are started and ended is in detail/process_job.cpp.
#include "meshwise/bootstrap/launch_processes.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <string>
#include <vector>

#include "meshwise/bootstrap/process_options.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/collective/communicator.hpp"
#include "meshwise/core/error.hpp"

using meshwise::Code;
using meshwise::Communicator;
using meshwise::Error;
using meshwise::launch_processes;
using meshwise::LaunchOptions;
using meshwise::ProcessOptions;
using meshwise::Report;

namespace {

/// What a launch throws; a report without text if nothing.
template <class Program>
Report thrown(int ranks, const Program& program, const ProcessOptions& processes = {}) {
  LaunchOptions options;
  options.deadline = 60;
  try {
    launch_processes(
        ranks, options,
        [&](Communicator& world) {
          for (const int one : {SIGINT, SIGTERM, SIGSEGV, SIGABRT}) signal(one, SIG_DFL);  // not the test's handlers
          program(world);
        },
        processes);
  } catch (const Error& error) {
    return error.report();
  }
  return {};
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

bool childless() { return waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD; }

/// Throws unless the sum over all ranks is right.
void sum(Communicator& world, std::size_t count) {
  std::vector<double> values(count, world.rank() + 1);
  all_reduce(world, values);
  for (const double value : values) {
    if (value != world.size() * (world.size() + 1) / 2) throw std::runtime_error("wrong sum");
  }
}

}  // namespace

TEST_CASE("a program runs once on every rank, and they reach each other") {
  for (const int ranks : {1, 2, 3, 5}) {
    const pid_t parent = getpid();
    const Report report = thrown(ranks, [&](Communicator& world) {
      if (world.size() != ranks || getppid() != parent) throw std::runtime_error("not a rank");
      for (const std::size_t count : {0u, 1u, 100u, 100'000u}) sum(world, count);
      barrier(world);
    });
    CHECK(report.found.empty());
    CHECK(childless());
  }
  int calls = 0;
  launch_processes(2, [&](Communicator& world) { calls += world.size(); });
  CHECK(calls == 0);  // it is the ranks' memory that has changed
}

TEST_CASE("a rank that leaves takes nothing away that others still read") {
  for (const std::size_t count : {10u, 1000u, 10'000u, 1'000'000u}) {
    for (int repeat = 0; repeat < 20; ++repeat) {
      const Report report = thrown(2, [&](Communicator& world) { sum(world, count); });
      CHECK(report.found.empty());
    }
  }
}

TEST_CASE("an impossible number of ranks is refused") {
  for (const int ranks : {-1, 0, 257}) {
    const Report report = thrown(ranks, [](Communicator&) {});
    CHECK(report.code == Code::invalid_argument);
    CHECK(has(report.found, std::to_string(ranks)));
  }
}

TEST_CASE("what a rank throws is thrown, not what the others say of it") {
  for (int who = 0; who < 3; ++who) {
    const Report report = thrown(3, [&](Communicator& world) {
      sum(world, 1000);
      if (world.rank() == who) meshwise::fail("verb", "this", "that", "remedy", who);
      sum(world, 1000);
    });
    CHECK(report.code == Code::invalid_argument);
    CHECK(report.operation == "verb");
    CHECK(report.rank == who);
    const Report other = thrown(3, [&](Communicator& world) {
      if (world.rank() == who) throw std::runtime_error("out of luck");
      barrier(world);
    });
    CHECK(has(other.found, "out of luck"));
    CHECK(other.rank == who);
    CHECK(childless());
  }
}

TEST_CASE("a rank that is killed or exits is named, and how it ended") {
  for (int who = 0; who < 3; ++who) {
    const std::string name = "rank " + std::to_string(who) + " (pid ";
    const Report killed = thrown(3, [&](Communicator& world) {
      sum(world, 1000);
      if (world.rank() == who) raise(SIGKILL);
      sum(world, 1000);
    });
    CHECK(killed.code == Code::peer_left);
    CHECK(killed.ranks == std::vector<int>{who});
    CHECK(has(killed.found, name));
    CHECK(has(killed.found, "was killed by signal 9"));
    const Report gone = thrown(3, [&](Communicator& world) {
      sum(world, 1000);
      if (world.rank() == who) _exit(3);
      sum(world, 1000);
    });
    CHECK(gone.code == Code::peer_left);
    CHECK(has(gone.found, name));
    CHECK(has(gone.found, "exited with code 3"));
    CHECK(childless());
  }
}

TEST_CASE("ranks that wait for ever are ended at the deadline of the whole") {
  ProcessOptions processes;
  processes.deadline = 0.5;
  const Report report = thrown(
      2,
      [](Communicator& world) {
        if (world.rank() == 1) raise(SIGSTOP);
        barrier(world);
      },
      processes);
  CHECK(report.code == Code::timed_out);
  CHECK(has(report.found, "ranks 0 and 1"));
  CHECK(childless());
}
