// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/shared_memory/control.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>

#include "../../support/processes.hpp"
#include "meshwise/fabric/shared_memory/descriptor.hpp"
#include "meshwise/fabric/shared_memory/memory_file.hpp"

namespace {

using namespace meshwise::detail;

static_assert(sizeof(RankRecord) % 128 == 0 && sizeof(Control) % 128 == 0, "records lie on lines of their own");
static_assert(Control::bytes(256) < 1'000'000);
static_assert(Control::right_version() > 1, "the versions of all layouts are large numbers");

}  // namespace

TEST_CASE("the lock of a rank shows while its process lives, and belongs to it alone") {
  const Descriptor file = memory_file("test");
  REQUIRE(file);
  CHECK_FALSE(LifeLock::held(file.get(), 0));
  test::Children children(2, [&](int k, const test::Line& line) -> std::string {
    if (!LifeLock::take(file.get(), k)) return "not taken";
    line.say("taken");
    while (line.hear() != "end") line.say(LifeLock::take(file.get(), 1 - k) ? "taken" : "refused");
    return "end";
  });
  for (int k = 0; k < 2; ++k) CHECK(children.hear(k) == "taken");
  for (int k = 0; k < 2; ++k) {
    CHECK(LifeLock::held(file.get(), k));
    CHECK_FALSE(LifeLock::take(file.get(), k));
    children.say(k, "try");
    CHECK(children.hear(k) == "refused");
  }
  CHECK_FALSE(LifeLock::held(file.get(), 2));

  children.send_signal(0, SIGSTOP);
  int status = 0;
  REQUIRE(waitpid(children.pid(0), &status, WUNTRACED) == children.pid(0));
  CHECK(WIFSTOPPED(status));
  CHECK(LifeLock::held(file.get(), 0));
  children.send_signal(0, SIGKILL);
  children.reap(0);
  CHECK_FALSE(LifeLock::held(file.get(), 0));

  children.say(1, "end");
  CHECK(children.hear(1) == "end");
  children.reap(1);
  CHECK_FALSE(LifeLock::held(file.get(), 1));
}

TEST_CASE("a child of a rank neither inherits its lock nor takes it away when it ends") {
  const Descriptor file = memory_file("test");
  test::Children children(1, [&](int, const test::Line& line) -> std::string {
    LifeLock::take(file.get(), 0);
    // A child that lives on, and one that has closed its descriptors and ended.
    const pid_t brief = fork();
    if (brief == 0) _exit(0);
    while (waitpid(brief, nullptr, 0) < 0) {}
    const pid_t survivor = fork();
    if (survivor == 0) {
      pause();
      _exit(0);
    }
    line.say(std::to_string(survivor));
    return line.hear();
  });
  const pid_t survivor = std::stoi(children.hear(0));
  CHECK(LifeLock::held(file.get(), 0));
  children.send_signal(0, SIGKILL);
  children.reap(0);
  CHECK(kill(survivor, 0) == 0);
  CHECK_FALSE(LifeLock::held(file.get(), 0));
  kill(survivor, SIGKILL);
}
