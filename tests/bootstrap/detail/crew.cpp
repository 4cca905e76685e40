// SPDX-License-Identifier: Apache-2.0
#include "meshwise/bootstrap/detail/crew.hpp"

#include <doctest/doctest.h>
#include <poll.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "../../support/standard_error.hpp"

using meshwise::detail::Crew;
using meshwise::detail::CrewTask;

namespace {

CrewTask task(int (*call)(void*, int)) { return {call, nullptr}; }

int rank_as_code(void*, int rank) { return 10 + rank; }
int idle(void*, int) {
  for (;;) pause();
}

/// Looks until a rank has ended, at most 20 s.
bool await(Crew& crew, int rank) {
  for (int k = 0; k < 2000; ++k) {
    if (crew.has_ended(rank)) return true;
    pollfd one{crew.watch(rank), POLLIN, 0};
    poll(&one, crew.watch(rank) < 0 ? 0 : 1, Crew::slice);
  }
  return false;
}

bool exists(pid_t pid) { return kill(pid, 0) == 0; }

}  // namespace

TEST_CASE("how a process ended, in words and as shells say it") {
  CHECK(meshwise::detail::ending_text(3 << 8) == "exited with code 3");
  CHECK(meshwise::detail::exit_code(3 << 8) == 3);
  CHECK(meshwise::detail::ending_text(SIGKILL) == "was killed by signal 9 (Killed)");
  CHECK(meshwise::detail::exit_code(SIGKILL) == 128 + 9);
  CHECK(meshwise::detail::exit_code(SIGSEGV | 0x80) == 128 + 11);  // with a core
}

TEST_CASE("every rank runs the task and its result is its exit code") {
  Crew crew(3);
  CHECK(crew.ranks() == 3);
  CHECK(crew.all_running().empty());
  CHECK_FALSE(crew.has_ended(1));  // it has not begun
  for (int rank = 0; rank < 3; ++rank) REQUIRE(crew.start(rank, task(rank_as_code)) == 0);
  for (int rank = 2; rank >= 0; --rank) {
    REQUIRE(await(crew, rank));
    CHECK_FALSE(crew.running(rank));
    CHECK_FALSE(crew.has_ended(rank));  // told once
    CHECK_FALSE(crew.lost(rank));
    CHECK(WIFEXITED(crew.status(rank)));
    CHECK(WEXITSTATUS(crew.status(rank)) == 10 + rank);
    CHECK(crew.watch(rank) == -1);
  }
}

TEST_CASE("what leaves a task is said and is exit code 1") {
  std::fflush(stdout);
  Crew crew(2);
  const std::string said = captured::written([&] {
    REQUIRE(crew.start(0, task([](void*, int) -> int { throw std::runtime_error("out of luck"); })) == 0);
    CHECK(await(crew, 0));
    REQUIRE(crew.start(1, task([](void*, int) -> int { throw 5; })) == 0);
    CHECK(await(crew, 1));
  });
  CHECK(said == "rank 0: out of luck\nrank 1: an exception that is no std::exception\n");
  for (int rank = 0; rank < 2; ++rank) CHECK(meshwise::detail::exit_code(crew.status(rank)) == 1);
}

TEST_CASE("signals reach the ranks that run; none outlives the crew, stopped or not") {
  std::vector<pid_t> pids;
  {
    Crew crew(4);
    for (int rank = 0; rank < 4; ++rank) {
      REQUIRE(crew.start(rank, task(idle)) == 0);
      pids.push_back(crew.pid(rank));
    }
    crew.send(1, SIGUSR1);
    REQUIRE(await(crew, 1));
    CHECK(meshwise::detail::ending_text(crew.status(1)).find("was killed by signal 10") == 0);
    crew.send(1, SIGUSR1);  // to nobody
    crew.send(2, SIGSTOP);
    CHECK_FALSE(crew.has_ended(2));
    const auto running = crew.all_running();
    CHECK((running.size() == 3 && running[0] == 0 && running[1] == 2 && running[2] == 3));
  }
  for (const pid_t pid : pids) CHECK_FALSE(exists(pid));
}

TEST_CASE("a status that somebody else has taken is lost, and the others are not") {
  Crew crew(2);
  for (int rank = 0; rank < 2; ++rank) REQUIRE(crew.start(rank, task(rank_as_code)) == 0);
  int status = 0;
  REQUIRE(waitpid(crew.pid(0), &status, 0) == crew.pid(0));
  REQUIRE(await(crew, 0));
  CHECK(crew.lost(0));
  REQUIRE(await(crew, 1));
  CHECK_FALSE(crew.lost(1));
}

TEST_CASE("a child dies with the thread that has started it") {
  Crew crew(1);
  std::thread([&] {
    meshwise::detail::Pipe pipe = meshwise::detail::Pipe::make("test");
    const int begun = pipe.writes.get();
    REQUIRE(crew.start(0, {[](void* object, int) {
                             const char byte = 'x';
                             if (write(*static_cast<const int*>(object), &byte, 1) != 1) return 1;
                             return idle(nullptr, 0);
                           },
                           const_cast<int*>(&begun)}) == 0);
    char byte;
    CHECK(read(pipe.reads.get(), &byte, 1) == 1);
    CHECK_FALSE(crew.has_ended(0));
  }).join();
  REQUIRE(await(crew, 0));
  CHECK(crew.status(0) == SIGKILL);
}

TEST_CASE("a child forgets the others") {
  Crew crew(2);
  REQUIRE(crew.start(0, task(idle)) == 0);
  REQUIRE(crew.start(1, {[](void* object, int) {
                           auto& copy = *static_cast<Crew*>(object);
                           copy.leave();
                           return copy.all_running().empty() && copy.pid(0) == -1 ? 5 : 6;
                         },
                         &crew}) == 0);
  REQUIRE(await(crew, 1));
  CHECK(meshwise::detail::exit_code(crew.status(1)) == 5);
  CHECK(crew.running(0));
}
