// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <string>

#include "meshwise/bootstrap/detail/system.hpp"
#include "meshwise/bootstrap/detail/text.hpp"
#include "meshwise/core/detail/list.hpp"

namespace meshwise::detail {

/// "was killed by signal 9 (Killed)", "exited with code 3": of a status as waitpid gives it.
inline std::string ending_text(int status) {
  if (WIFSIGNALED(status)) return "was killed by signal " + signal_text(WTERMSIG(status));
  return "exited with code " + std::to_string(WEXITSTATUS(status));
}

/// As shells say it: the exit code, or 128 and the signal.
inline int exit_code(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

/// What a forked process does; what it returns is its exit code.
struct CrewTask {
  int (*call)(void* object, int rank);
  void* object;
};

/// The processes of a job, one per rank, children of this one. None outlives the crew, whatever is thrown.
///
/// A child dies with the thread that has started it: that one has to stay until all have ended. Each child is looked
/// at by its own number, so that other children of this process are none of its business.
class Crew {
 public:
  explicit Crew(int ranks) : members_(static_cast<std::size_t>(ranks)) {}
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew() {
    for (int rank = 0; rank < ranks(); ++rank) {
      if (running(rank)) kill(member(rank).pid, SIGKILL);
    }
    for (int rank = 0; rank < ranks(); ++rank) {
      if (running(rank)) wait(rank, 0);
    }
  }

  int ranks() const { return static_cast<int>(members_.size()); }

  /// Forks a rank. 0, or why it cannot. The task runs in the child with whatever handlers and masks this process has.
  int start(int rank, CrewTask task) {
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) return errno;
    if (pid == 0) {
      // The parent may have died before its death would have been noticed.
      if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(1);
      _exit(result_of(task, rank));
    }
    Member& one = member(rank);
    one.pid = pid;
    one.running = true;
#ifdef SYS_pidfd_open
    one.watch = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0u)));
#endif
    return 0;
  }

  bool running(int rank) const { return member(rank).running; }
  pid_t pid(int rank) const { return member(rank).pid; }
  /// As of waitpid, once it has ended.
  int status(int rank) const { return member(rank).status; }
  /// Somebody else in this process has taken its status.
  bool lost(int rank) const { return member(rank).lost; }
  /// Becomes readable when the rank ends; -1 where the kernel has no such thing: look every `slice` milliseconds.
  int watch(int rank) const { return member(rank).watch.get(); }
  static constexpr int slice = 10;

  List<int> all_running() const {
    List<int> result;
    for (int rank = 0; rank < ranks(); ++rank) {
      if (running(rank)) result.push_back(rank);
    }
    return result;
  }

  /// Whether a rank has ended since the last question. Never waits, leaves no zombie.
  bool has_ended(int rank) { return running(rank) && wait(rank, WNOHANG); }

  /// To a rank that has not ended.
  void send(int rank, int signal) {
    if (running(rank)) kill(member(rank).pid, signal);
  }

  /// In a child: forgets the others.
  void leave() {
    for (Member& one : members_) one = Member();
  }

 private:
  struct Member {
    pid_t pid = -1;
    Descriptor watch;
    bool running = false;
    bool lost = false;
    int status = 0;
  };

  /// An exception must not leave for what this process was before the fork.
  static int result_of(CrewTask task, int rank) {
    try {
      return task.call(task.object, rank);
    } catch (const std::exception& error) {
      std::fflush(stdout);
      std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    } catch (...) {
      std::fflush(stdout);
      std::fprintf(stderr, "rank %d: an exception that is no std::exception\n", rank);
    }
    std::fflush(nullptr);
    return 1;
  }

  Member& member(int rank) { return members_[static_cast<std::size_t>(rank)]; }
  const Member& member(int rank) const { return members_[static_cast<std::size_t>(rank)]; }

  bool wait(int rank, int options) {
    Member& one = member(rank);
    int status = 0;
    pid_t pid;
    while ((pid = waitpid(one.pid, &status, options)) < 0 && errno == EINTR) {}
    if (pid == 0) return false;
    one.lost = pid < 0;
    one.status = pid < 0 ? 0 : status;
    one.running = false;
    one.watch = Descriptor();
    return true;
  }

  List<Member> members_;
};

}  // namespace meshwise::detail
