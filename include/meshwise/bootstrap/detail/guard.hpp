// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <new>
#include <utility>

#include "meshwise/bootstrap/detail/system.hpp"

namespace meshwise::detail {

/// A small process that outlives the launcher by a moment: when the launcher is gone, however it ended, it kills the
/// process groups of the ranks. The kernel itself kills the ranks then, but not what they have started.
///
/// It waits for the end of a pipe that only the launcher can write to, and reads the groups from memory that is shared
/// with the launcher and the ranks. It is in a session of its own, keeps no descriptor open but that pipe, and no
/// signal but SIGKILL ends it.
class Guard {
 public:
  /// Starts it; so early that it inherits nothing of the job.
  Guard(const char* operation, int ranks) : ranks_(ranks) {
    bytes_ = static_cast<std::size_t>(ranks) * sizeof(Entry);
    void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) fail_by_system(operation, "cannot map memory", errno, "start fewer ranks");
    entries_ = static_cast<Entry*>(memory);
    for (int rank = 0; rank < ranks; ++rank) new (&entries_[rank]) Entry;
    try {
      Pipe pipe = Pipe::make(operation);
      pid_ = fork();
      if (pid_ < 0) {
        fail_by_system(operation, "cannot fork a process", errno, "raise the limit of processes (ulimit -u)");
      }
      if (pid_ == 0) stand(pipe.reads.get());
      pipe_ = std::move(pipe.writes);
    } catch (...) {
      munmap(memory, bytes_);
      throw;
    }
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  /// Lets it do its work, for groups that are not forgotten, and does not leave a zombie.
  ~Guard() {
    pipe_ = Descriptor();
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {}
    munmap(entries_, bytes_);
  }

  /// From now on this group dies with the launcher. Said by the launcher and by the rank, whoever is first.
  void watch(int rank, int group) { entries_[rank].group.store(group); }
  void forget(int rank) { entries_[rank].group.store(0); }
  /// 0: none.
  int group(int rank) const { return entries_[rank].group.load(); }

  /// Why a rank could not become the program that it should, said by itself; 0 if it could.
  void set_failed(int rank, int error) { entries_[rank].error.store(error); }
  int failed(int rank) const { return entries_[rank].error.load(); }

  /// In a rank: the launcher alone keeps the guard standing.
  void leave() { pipe_ = Descriptor(); }

 private:
  struct Entry {
    std::atomic<int> group{0};
    std::atomic<int> error{0};
  };

  [[noreturn]] void stand(int end) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    setsid();
    prctl(PR_SET_NAME, "meshwise-guard");
    if (dup2(end, 0) < 0) _exit(1);
    close_from(1);
    char byte;
    while (read(0, &byte, 1) < 0 && errno == EINTR) {}
    for (int rank = 0; rank < ranks_; ++rank) {
      const int group = entries_[rank].group.load();
      if (group > 1) kill(-group, SIGKILL);
    }
    _exit(0);
  }

  static void close_from(int first) {
#ifdef SYS_close_range
    if (syscall(SYS_close_range, static_cast<unsigned>(first), ~0u, 0u) == 0) return;
#endif
    const long most = sysconf(_SC_OPEN_MAX);
    for (int one = first; one < (most > 0 && most < 65536 ? most : 65536); ++one) close(one);
  }

  int ranks_;
  std::size_t bytes_ = 0;
  Entry* entries_ = nullptr;
  Descriptor pipe_;
  pid_t pid_ = -1;
};

}  // namespace meshwise::detail
