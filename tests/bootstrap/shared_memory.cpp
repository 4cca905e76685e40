// SPDX-License-Identifier: Apache-2.0
#include "meshwise/bootstrap/shared_memory.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "launched.hpp"
#include "meshwise/bootstrap/environment.hpp"
#include "meshwise/bootstrap/run.hpp"
#include "meshwise/bootstrap/thread.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/communicator.hpp"
#include "meshwise/core/error.hpp"

using launched::count;
using launched::options;
using launched::Running;
using meshwise::Communicator;
using meshwise::fabrics;
using meshwise::Place;
using meshwise::run;
using meshwise::RunOptions;
using meshwise::shared_memory;
using meshwise::detail::PlaceReader;
using meshwise::detail::PlaceVariables;
using meshwise::detail::Segments;

namespace {

using Either = fabrics<shared_memory, meshwise::thread>;

/// What a started program finds in its environment, for a rank that is a function.
void settle(int rank, Segments& segments) {
  const int ranks = segments.ranks();
  const Segments::Descriptors all = segments.release();
  const std::string values[] = {std::to_string(rank), std::to_string(ranks), std::to_string(rank),
                                std::to_string(ranks), PlaceReader::job(all.control, all.arenas)};
  for (int k = 0; k < PlaceVariables::count; ++k) setenv(PlaceVariables::names[k], values[k].c_str(), 1);
}

/// Says how many ranks have been summed over.
void sum(Communicator& world) {
  std::vector<int> ones(1000, 1);
  all_reduce(world, ones);
  if (world.rank() == 0) std::printf("%d ranks, %d\n", world.size(), ones[999]);
}

}  // namespace

TEST_CASE("under a launcher every process is a rank") {
  for (const int ranks : {1, 2, 5}) {
    Running job(options(ranks), launched::ranks([](int rank, Segments& segments) {
                  settle(rank, segments);
                  return run<Either>(sum);
                }));
    CHECK(job.end().code() == 0);
    const std::string text = std::to_string(ranks) + " ranks, " + std::to_string(ranks) + "\n";
    CHECK(job.end().out == text);
    CHECK(job.end().err.empty());
  }
}

TEST_CASE("the number of ranks is the launcher's") {
  Running job(options(3), launched::ranks([](int rank, Segments& segments) {
                settle(rank, segments);
                setenv("MESHWISE_RANKS", "7", 1);  // a default, and so is overruled
                RunOptions wish;
                wish.ranks = rank == 1 ? 4 : 3;
                return run<Either>(wish, sum);
              }));
  CHECK(job.end().code() == 1);
  CHECK(job.end().err.find("rank 1: run (rank 1): expected 4 ranks") != std::string::npos);
  CHECK(job.end().gone);
}

TEST_CASE("what a rank throws ends the job with its message first, and once") {
  meshwise::LauncherOptions patient = options(3);
  patient.grace = 30;
  Running job(patient, launched::ranks([](int rank, Segments& segments) {
                settle(rank, segments);
                return run<Either>([](Communicator& world) {
                  if (world.rank() == 2) throw std::runtime_error("out of luck");
                  sum(world);
                });
              }));
  const std::string& text = job.end().err;
  CHECK(job.end().code() == 1);
  CHECK(text.find("rank 2: out of luck\nmeshwise-run: rank 2 (pid ") == 0);
  CHECK(count(text, "\nrank 0: ") == 1);
  CHECK(count(text, "\nrank 1: ") == 1);
  CHECK(count(text, "rank 2: out of luck") == 1);
  CHECK(job.end().out.empty());
}

TEST_CASE("a rank that is killed is the first to be told of, and the others say in which call they noticed") {
  meshwise::LauncherOptions patient = options(3);
  patient.grace = 30;
  Running job(patient, launched::ranks([](int rank, Segments& segments) {
                settle(rank, segments);
                return run<Either>([](Communicator& world) {
                  if (world.rank() == 1) raise(SIGKILL);
                  sum(world);
                });
              }));
  const std::string& text = job.end().err;
  INFO(text);
  CHECK(job.end().code() == 128 + SIGKILL);
  CHECK(text.find("meshwise-run: rank 1 (pid ") == 0);
  CHECK(count(text, "\nrank 0: all_reduce") == 1);
  CHECK(count(text, "\nrank 2: all_reduce") == 1);
}

TEST_CASE("without a launcher it fits only where it is asked for, and forks") {
  for (const char* const name : PlaceVariables::names) unsetenv(name);
  unsetenv("MESHWISE_FABRIC");
  CHECK(!shared_memory::fits());
  CHECK(shared_memory::size() == 0);
  CHECK(shared_memory::rank() == -1);
  setenv("MESHWISE_FABRIC", "thread", 1);
  CHECK(!shared_memory::fits());
  setenv("MESHWISE_FABRIC", "shared_memory", 1);
  CHECK(shared_memory::fits());
  const pid_t here = getpid();
  RunOptions three;
  three.ranks = 3;
  CHECK(run<Either>(three, [&](Communicator& world) {
          if (getpid() == here || world.size() != 3) throw std::runtime_error("not a rank");
        }) == 0);
  unsetenv("MESHWISE_FABRIC");
}
