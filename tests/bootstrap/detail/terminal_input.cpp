// SPDX-License-Identifier: Apache-2.0
#include "meshwise/bootstrap/detail/terminal_input.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "../../support/processes.hpp"

using meshwise::detail::Descriptor;
using meshwise::detail::List;
using meshwise::detail::TerminalInput;

namespace {

void require(bool good, const char* what) {
  if (!good) throw std::runtime_error(what);
}

/// Makes this process the leader of a session on a terminal of its own, which is its input. The other end.
Descriptor new_terminal() {
  Descriptor master(posix_openpt(O_RDWR | O_NOCTTY));
  require(static_cast<bool>(master) && grantpt(master.get()) == 0 && unlockpt(master.get()) == 0, "no terminal");
  require(setsid() > 0, "no session");
  signal(SIGHUP, SIG_IGN);                                      // when the other end goes
  const Descriptor slave(open(ptsname(master.get()), O_RDWR));  // the first one is the session's
  require(static_cast<bool>(slave) && dup2(slave.get(), 0) == 0, "no input");
  return master;
}

void type(const Descriptor& master, const std::string& text) {
  require(write(master.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()), "cannot type");
}

/// The next line that rank 0 reads; empty at the end.
std::string line_of(const Descriptor& input) {
  std::string line;
  char byte;
  while (read(input.get(), &byte, 1) == 1) {
    line += byte;
    if (byte == '\n') break;
  }
  return line;
}

/// Waits for what the input waits for, at most 20 s. The descriptor; -1 if there is none.
int await(const TerminalInput& input) {
  List<pollfd> polled;
  int milliseconds = 20'000;
  input.watch(polled, milliseconds);
  if (polled.empty()) return -1;
  require(polled.size() == 1 && poll(polled.data(), 1, milliseconds) == 1, "nothing comes");
  return polled[0].fd;
}

void alone(void (*test)()) {
  test::Children child(1, [&](int, const test::Line&) {
    test();
    return std::string("passed");
  });
  CHECK(child.hear(0) == "passed");
}

}  // namespace

TEST_CASE("an input that is no terminal is nobody's business") {
  alone([] {
    require(dup2(open("/dev/null", O_RDONLY), 0) == 0, "no input");
    TerminalInput input;
    require(!input.connect("test"), "rank 0 inherits it");
    List<pollfd> polled;
    int milliseconds = -1;
    input.watch(polled, milliseconds);
    input.pass();
    require(polled.empty() && milliseconds == -1, "nothing to wait for");
  });
}

TEST_CASE("lines that are typed reach rank 0, and so does their end") {
  alone([] {
    const Descriptor master = new_terminal();
    TerminalInput input;
    const Descriptor rank = input.connect("test");
    require(static_cast<bool>(rank), "a terminal");
    input.pass();  // nothing there: does not wait
    for (const char* const line : {"one\n", "\n", "three words long\n"}) {
      type(master, line);
      require(await(input) == 0, "the terminal is polled");
      input.pass();
      require(line_of(rank) == line, "the line arrives");
    }
    type(master, "\x04");
    require(await(input) == 0, "the end comes");
    input.pass();
    require(line_of(rank).empty(), "the end arrives");
    require(await(input) == -1, "nothing more is read");
  });
}

TEST_CASE("a rank that does not read holds up its input and nothing else, and loses none of it") {
  alone([] {
    const Descriptor master = new_terminal();
    TerminalInput input;
    const Descriptor rank = input.connect("test");
    const std::string line = std::string(1999, 'x') + "\n";
    int typed = 0;
    bool full = false;
    while (!full) {
      require(typed < 1000, "a pipe holds less");
      type(master, line);
      ++typed;
      require(await(input) == 0, "the terminal is polled");
      input.pass();
      List<pollfd> polled;
      int milliseconds = 0;
      input.watch(polled, milliseconds);
      full = polled[0].fd != 0;
    }
    for (int k = 0; k < typed; ++k) {
      require(line_of(rank) == line, "every line arrives");
      input.pass();
    }
    type(master, "more\n");
    require(await(input) == 0, "the terminal is polled again");
    input.pass();
    require(line_of(rank) == "more\n", "more arrives");
  });
}

TEST_CASE("a rank that has closed its input ends it") {
  alone([] {
    signal(SIGPIPE, SIG_IGN);
    const Descriptor master = new_terminal();
    TerminalInput input;
    Descriptor rank = input.connect("test");
    rank = Descriptor();
    type(master, "to nobody\n");
    require(await(input) == 0, "the terminal is polled");
    input.pass();
    require(await(input) == -1, "nothing more is read");
  });
}

TEST_CASE("in the background the terminal is left alone, and looked at now and then") {
  alone([] {
    const Descriptor master = new_terminal();
    type(master, "for the foreground\n");
    const pid_t pid = fork();
    if (pid == 0) {
      setpgid(0, 0);
      TerminalInput input;
      const Descriptor rank = input.connect("test");
      List<pollfd> polled;
      int milliseconds = -1;
      input.watch(polled, milliseconds);
      input.pass();  // would be stopped if it read
      _exit(static_cast<bool>(rank) && polled.empty() && milliseconds == 1000 ? 5 : 6);
    }
    int status = 0;
    require(waitpid(pid, &status, WUNTRACED) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 5, "not read");
  });
}
