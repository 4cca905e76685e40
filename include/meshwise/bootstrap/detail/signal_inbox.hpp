// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "meshwise/bootstrap/detail/system.hpp"

namespace meshwise::detail {

/// The signals that a launcher passes on, as something to poll. While it lives they interrupt nothing; SIGPIPE is
/// ignored, and a SIGCHLD that was ignored is not. What was ignored before stays so, as `nohup` wants it.
///
/// For a process with one thread: others would take the signals.
class SignalInbox {
 public:
  explicit SignalInbox(const char* operation) {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT}) {
      struct sigaction action {};
      const bool known = sigaction(signal, nullptr, &action) == 0;
      if (known && (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_IGN) continue;
      sigaddset(&set, signal);
    }
    reads_ = Descriptor(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!reads_) fail_by_system(operation, "cannot watch for signals", errno, "raise the limit of open files");
    sigaddset(&set, SIGTTIN);  // who reads from a terminal in the background gets an error instead
    sigprocmask(SIG_BLOCK, &set, &before_);
    struct sigaction action {};
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, &pipe_before_);
    action.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &action, &child_before_);
  }
  SignalInbox(const SignalInbox&) = delete;
  SignalInbox& operator=(const SignalInbox&) = delete;
  ~SignalInbox() { restore(); }

  int descriptor() const { return reads_.get(); }

  /// The next one that has come; 0 if none has.
  int next() {
    signalfd_siginfo info{};
    ssize_t bytes;
    while ((bytes = read(reads_.get(), &info, sizeof(info))) < 0 && errno == EINTR) {}
    return bytes == static_cast<ssize_t>(sizeof(info)) ? static_cast<int>(info.ssi_signo) : 0;
  }

  /// As everything was. In a rank this is its beginning.
  void restore() {
    if (!reads_) return;
    reads_ = Descriptor();
    sigaction(SIGPIPE, &pipe_before_, nullptr);
    sigaction(SIGCHLD, &child_before_, nullptr);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  Descriptor reads_;
  sigset_t before_;
  struct sigaction pipe_before_ {};
  struct sigaction child_before_ {};
};

}  // namespace meshwise::detail
