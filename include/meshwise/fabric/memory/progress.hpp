// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "meshwise/core/error.hpp"
#include "meshwise/fabric/memory/agenda.hpp"

namespace meshwise::detail {

/// A thread that goes on with all that a rank has started, while the rank's own threads compute.
///
/// It sleeps while nothing is in flight; else it looks, yields, and sleeps ever longer, up to a millisecond, until
/// something comes about. Signals go to the program's threads. Errors that it meets are left to the operations' own
/// waits.
class ProgressThread {
 public:
  /// agenda: a driven one. crowded: there are more threads than cores, so that every look takes time from somebody.
  /// Errors: `out_of_memory` if there can be no thread.
  ProgressThread(std::shared_ptr<Agenda> agenda, bool crowded, int rank)
      : agenda_(std::move(agenda)), crowded_(crowded), process_(getpid()) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(
        &thread_, nullptr,
        [](void* self) -> void* {
          static_cast<ProgressThread*>(self)->work();
          return nullptr;
        },
        this);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (error == 0) return;
    Report report;
    report.code = Code::out_of_memory;
    report.operation = "launch";
    report.rank = rank;
    report.expected = "a progress thread";
    report.found = std::strerror(error);
    report.remedy = "start fewer ranks, raise the limit of threads, or do without (LaunchOptions::progress_thread)";
    throw Error(std::move(report));
  }
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  /// Returns when the thread has ended. A process that was forked off has none, but an agenda that says that one sleeps
  /// on it, whose end would wait for it: that stays.
  ~ProgressThread() {
    if (getpid() != process_) {
      (void)new (std::nothrow) std::shared_ptr<Agenda>(std::move(agenda_));
      return;
    }
    agenda_->end();
    pthread_join(thread_, nullptr);
  }

 private:
  static constexpr int most_looks = 64;  ///< in a row, with nothing to do
  static constexpr std::int64_t shortest = 20'000;
  static constexpr std::int64_t longest = 1'000'000;

  void work() {
    int looks = 0;
    std::int64_t nanoseconds = shortest;
    for (;;) {
      if (agenda_->advance_all()) {
        looks = 0;
        nanoseconds = shortest;
        if (crowded_) sched_yield();  // whoever waits for what has come about
        continue;
      }
      if (!crowded_ && !agenda_->empty() && ++looks < most_looks) {
        sched_yield();
        continue;
      }
      switch (agenda_->sleep(nanoseconds)) {
        case Agenda::Woken::end: return;
        case Agenda::Woken::news:
          looks = 0;
          nanoseconds = shortest;
          break;
        case Agenda::Woken::time:
          if (nanoseconds < longest) nanoseconds += nanoseconds / 4;
      }
    }
  }

  std::shared_ptr<Agenda> agenda_;
  bool crowded_;
  pid_t process_;
  pthread_t thread_{};
};

}  // namespace meshwise::detail
