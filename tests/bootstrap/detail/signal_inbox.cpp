// SPDX-License-Identifier: Apache-2.0
#include "meshwise/bootstrap/detail/signal_inbox.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

#include "../../support/processes.hpp"

using meshwise::detail::SignalInbox;

namespace {

void require(bool good, const char* what) {
  if (!good) throw std::runtime_error(what);
}

bool readable(int descriptor) {
  pollfd one{descriptor, POLLIN, 0};
  return poll(&one, 1, 0) == 1;
}

/// Runs a test in a process of its own, whose signals are nobody else's.
void alone(void (*test)()) {
  test::Children child(1, [&](int, const test::Line&) {
    test();
    return std::string("passed");
  });
  CHECK(child.hear(0) == "passed");
}

}  // namespace

TEST_CASE("signals wait in the inbox and interrupt nothing") {
  alone([] {
    SignalInbox inbox("test");
    require(!readable(inbox.descriptor()) && inbox.next() == 0, "none has come");
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT}) {
      raise(signal);  // would end or stop this process
      require(readable(inbox.descriptor()), "it can be polled");
      require(inbox.next() == signal, "it is the one that came");
      require(inbox.next() == 0, "it comes once");
    }
    raise(SIGPIPE);
    raise(SIGTTIN);  // would stop it
    require(inbox.next() == 0, "these are nobody's business");
    sigset_t pending;
    int taken = 0;
    sigemptyset(&pending);
    sigaddset(&pending, SIGTTIN);
    require(sigwait(&pending, &taken) == 0 && taken == SIGTTIN, "it is held back");
  });
}

TEST_CASE("what was ignored stays ignored") {
  alone([] {
    std::signal(SIGHUP, SIG_IGN);
    SignalInbox inbox("test");
    raise(SIGHUP);
    require(inbox.next() == 0, "as nohup wants it");
    raise(SIGTERM);
    require(inbox.next() == SIGTERM, "the others come");
  });
}

TEST_CASE("children can be waited for while there is an inbox, and all is as before after it") {
  alone([] {
    std::signal(SIGCHLD, SIG_IGN);
    sigset_t before, after;
    sigprocmask(SIG_SETMASK, nullptr, &before);
    const auto handler_of = [](int signal) {
      struct sigaction action {};
      sigaction(signal, nullptr, &action);
      return action.sa_handler;
    };
    const auto pipe_before = handler_of(SIGPIPE);
    {
      SignalInbox inbox("test");
      require(handler_of(SIGPIPE) == SIG_IGN && handler_of(SIGCHLD) == SIG_DFL, "set");
      const pid_t pid = fork();
      if (pid == 0) {
        inbox.restore();
        inbox.restore();  // twice is once
        _exit(handler_of(SIGCHLD) == SIG_IGN && inbox.descriptor() < 0 ? 5 : 6);
      }
      int status = 0;
      require(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 5, "a rank begins so");
    }
    require(handler_of(SIGPIPE) == pipe_before && handler_of(SIGCHLD) == SIG_IGN, "handlers");
    sigprocmask(SIG_SETMASK, nullptr, &after);
    for (int signal = 1; signal < 32; ++signal) {
      require(sigismember(&before, signal) == sigismember(&after, signal), "mask");
    }
  });
}
