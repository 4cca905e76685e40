// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

namespace peers {

/// The processes of one contestant, under the launcher of its own. They are gone with this object, and with this
/// process however it ends.
class Job {
 public:
  Job() = default;
  Job(Job&& other) noexcept
      : process_(std::exchange(other.process_, -1)),
        output_(std::exchange(other.output_, -1)),
        status_(other.status_) {}
  Job& operator=(Job&& other) noexcept {
    stop();
    std::swap(process_, other.process_);
    std::swap(output_, other.output_);
    status_ = other.status_;
    return *this;
  }
  ~Job() {
    stop();
    if (output_ >= 0) close(output_);
  }

  /// Forks; the child runs body() and exits with what that returns. Its output is kept for `last_words`.
  template <class Body>
  static Job start(const Body& body) {
    Job job;
    job.output_ = memfd_create("output", MFD_CLOEXEC);
    std::fflush(nullptr);
    const pid_t parent = getpid();
    sigset_t ending, before;
    sigemptyset(&ending);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ending, signal);
    sigprocmask(SIG_BLOCK, &ending, &before);  // the child would treat them as this process does, until it has said how
    job.process_ = fork();
    if (job.process_ != 0) {
      sigprocmask(SIG_SETMASK, &before, nullptr);
      if (job.process_ > 0) setpgid(job.process_, job.process_);
      return job;
    }
    setpgid(0, 0);  // an interrupt of the terminal is this program's to handle
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &ending, nullptr);
    const int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, 0);
    dup2(job.output_ >= 0 ? job.output_ : nothing, 1);
    dup2(1, 2);
    _exit(body());
  }

  /// Whether it has not ended.
  bool running() {
    if (process_ <= 0) return false;
    const pid_t ended = waitpid(process_, &status_, WNOHANG);
    if (ended == 0 || (ended < 0 && errno == EINTR)) return true;
    process_ = -1;
    return false;
  }

  /// Whether it ends by itself in this time.
  bool ends_within(double seconds) {
    for (double left = seconds; running(); left -= 0.01) {
      if (left <= 0) return false;
      const std::timespec slice{0, 10'000'000};
      nanosleep(&slice, nullptr);
    }
    return true;
  }

  /// Ends it: asked first, so that a launcher can clean up; then not.
  void stop() {
    if (process_ <= 0) return;
    const pid_t group = process_;
    kill(process_, SIGTERM);
    if (!ends_within(3)) {
      kill(-group, SIGKILL);
      ends_within(3);
    }
  }

  /// How it has ended, in words.
  std::string ending() const {
    if (WIFSIGNALED(status_)) return std::string("killed by ") + strsignal(WTERMSIG(status_));
    return "exit code " + std::to_string(WEXITSTATUS(status_));
  }

  /// The last lines that it has written.
  std::string last_words(std::size_t most = 600) const {
    const off_t size = output_ < 0 ? 0 : lseek(output_, 0, SEEK_END);
    if (size <= 0) return {};
    const off_t from = size > static_cast<off_t>(most) ? size - static_cast<off_t>(most) : 0;
    std::string text(static_cast<std::size_t>(size - from), '\0');
    const ssize_t got = pread(output_, text.data(), text.size(), from);
    text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return text;
  }

 private:
  pid_t process_ = -1;
  int output_ = -1;
  int status_ = 0;
};

}  // namespace peers
