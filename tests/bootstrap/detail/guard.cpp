// SPDX-License-Identifier: Apache-2.0
#include "meshwise/bootstrap/detail/guard.hpp"

#include <doctest/doctest.h>

#include <string>

#include "../../support/processes.hpp"

using meshwise::detail::Descriptor;
using meshwise::detail::Guard;
using meshwise::detail::Pipe;

namespace {

/// A process that leads a group of its own and does nothing, until it is killed.
pid_t fork_idle(Guard* guard = nullptr) {
  const pid_t pid = fork();
  if (pid == 0) {
    if (guard != nullptr) guard->leave();
    setpgid(0, 0);
    for (;;) pause();
  }
  setpgid(pid, pid);  // whoever of the two is first
  return pid;
}

/// Whether all who can write to a pipe are gone within 20 s.
bool ends(const Descriptor& reads) {
  pollfd one{reads.get(), POLLIN, 0};
  char byte;
  return poll(&one, 1, 20'000) == 1 && read(reads.get(), &byte, 1) == 0;
}

}  // namespace

TEST_CASE("a guard kills the groups of a launcher that is gone, and goes") {
  for (const bool killed : {false, true}) {
    Pipe pipe = Pipe::make("test");
    {
      test::Children launcher(1, [&](int, const test::Line& line) -> std::string {
        Guard guard("test", 3);
        guard.watch(1, fork_idle(&guard));
        guard.watch(2, fork_idle(&guard));
        line.say("ready");
        line.hear();
        _exit(0);  // nothing is destroyed
      });
      pipe.writes = Descriptor();
      REQUIRE(launcher.hear(0) == "ready");
      if (killed) {
        launcher.send_signal(0, SIGKILL);
      } else {
        launcher.say(0, "end");
      }
      launcher.reap(0);
    }
    CHECK(ends(pipe.reads));  // both groups hold the other end, and so would the guard if it had not closed it
  }
}

TEST_CASE("a group that is forgotten is left alone") {
  const pid_t watched = fork_idle(), forgotten = fork_idle();
  {
    Guard guard("test", 2);
    guard.watch(0, watched);
    guard.watch(1, forgotten);
    CHECK(guard.group(1) == forgotten);
    guard.forget(1);
    CHECK(guard.group(1) == 0);
  }
  int status = 0;
  CHECK(waitpid(watched, &status, 0) == watched);
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
  CHECK(waitpid(forgotten, &status, WNOHANG) == 0);
  kill(forgotten, SIGKILL);
  CHECK(waitpid(forgotten, &status, 0) == forgotten);
}

TEST_CASE("ranks and the launcher see the same groups and failures; a rank that left does not keep the guard") {
  Guard guard("test", 2);
  CHECK(guard.failed(1) == 0);
  test::Children ranks(1, [&](int, const test::Line& line) {
    guard.leave();
    guard.watch(0, getpid());
    guard.set_failed(1, ENOENT);
    line.say("said");
    return line.hear();
  });
  REQUIRE(ranks.hear(0) == "said");
  CHECK(guard.group(0) == ranks.pid(0));
  CHECK(guard.failed(1) == ENOENT);
  guard.forget(0);
}
