// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>

#include "meshwise/bootstrap/detail/crew.hpp"
#include "meshwise/bootstrap/detail/pressure.hpp"
#include "meshwise/bootstrap/detail/recovery.hpp"
#include "meshwise/bootstrap/detail/system.hpp"
#include "meshwise/bootstrap/detail/text.hpp"
#include "meshwise/bootstrap/process_options.hpp"
#include "meshwise/core/detail/list.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/fabric/shared_memory/control.hpp"
#include "meshwise/fabric/shared_memory/segments.hpp"

namespace meshwise::detail {

/// What a rank runs in its process; what it returns is the exit code, 0 for success.
struct ProcessBody {
  int (*call)(void* context, int rank, Segments& segments);
  void* context;
};

/// Says in the job's memory why a rank has failed, and that the job has, if no other rank was first.
inline void record_failure(Control& control, int rank, const Report& report) noexcept {
  RankRecord& record = control.record(rank);
  record.report.pack(report);
  record.reported.store(1, std::memory_order_release);
  std::uint32_t nobody = 0;
  control.failed.compare_exchange_strong(nobody, static_cast<std::uint32_t>(rank) + 1);
}

/// A SIGCHLD that is ignored would let ends of children go by unseen: while this lives it is not.
class ChildrenSeen {
 public:
  ChildrenSeen() {
    if (sigaction(SIGCHLD, nullptr, &before_) != 0) return;
    const bool ignored = (before_.sa_flags & SA_SIGINFO) == 0 && before_.sa_handler == SIG_IGN;
    if (!ignored && (before_.sa_flags & SA_NOCLDWAIT) == 0) return;
    struct sigaction seen = before_;
    seen.sa_flags &= ~SA_NOCLDWAIT;
    if (ignored) seen.sa_handler = SIG_DFL;
    changed_ = sigaction(SIGCHLD, &seen, nullptr) == 0;
  }
  ChildrenSeen(const ChildrenSeen&) = delete;
  ChildrenSeen& operator=(const ChildrenSeen&) = delete;
  ~ChildrenSeen() {
    if (changed_) sigaction(SIGCHLD, &before_, nullptr);
  }

 private:
  struct sigaction before_ {};
  bool changed_ = false;
};

/// The ranks of one `launch_processes`, from the first fork to the last end.
class ProcessJob {
 public:
  ProcessJob(int ranks, const ProcessOptions& options, ProcessBody body)
      : options_(options),
        body_(body),
        segments_(Segments::create(ranks)),
        crew_(ranks),
        recovery_(segments_.header(), ranks),
        pressure_(options.grace, options.kill_after) {}

  void run() {
    std::fflush(nullptr);  // what is in buffers must not be written by every rank
    for (int rank = 0; rank < crew_.ranks(); ++rank) {
      const int error = crew_.start(rank, CrewTask{begin, this});
      if (error == 0) continue;
      fail_by_system("launch", "cannot fork rank " + std::to_string(rank) + " of " + std::to_string(crew_.ranks()),
                     error, "start fewer ranks, or raise the limit of processes (ulimit -u)");
    }
    if (options_.deadline > 0) end_ = Moment::in(options_.deadline);
    while (!crew_.all_running().empty() && !pressure_.hopeless()) {
      wait_a_while();
      look();
      if (end_.come()) overdue();
      if (goes_on()) pressure_.postpone();
      if (const int signal = pressure_.due()) end_all(signal);
    }
    judge();
  }

 private:
  static int begin(void* object, int rank) {
    ProcessJob& job = *static_cast<ProcessJob*>(object);
    Control& control = job.segments_.header();  // stays mapped, whatever the body does with the segments
    int code = 1;
    try {
      job.crew_.leave();
      if (rank > 0) read_nothing();
      code = job.body_.call(job.body_.context, rank, job.segments_);
    } catch (const Error& error) {
      record(control, rank, error.report());
    } catch (const std::exception& error) {
      record(control, rank, error.what());
    } catch (...) {
      record(control, rank, "an exception that is no std::exception");
    }
    std::fflush(nullptr);
    return code;
  }

  /// The input belongs to rank 0.
  static void read_nothing() {
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing < 0) return;
    dup2(nothing, 0);
    if (nothing != 0) close(nothing);
  }

  /// Unless the body has said it already.
  static void record(Control& control, int rank, const Report& report) {
    if (control.record(rank).reported.load() == 0) record_failure(control, rank, report);
  }
  static void record(Control& control, int rank, const char* text) {
    Report report;
    report.code = Code::aborted;
    report.operation = "launch";
    report.rank = rank;
    report.found = text;
    record(control, rank, report);
  }

  /// Until a rank ends, but not beyond what has to be looked at next.
  void wait_a_while() {
    List<pollfd> watched;
    int patience = -1;
    end_.limit(patience);
    pressure_.limit(patience);
    for (const int rank : crew_.all_running()) {
      if (crew_.watch(rank) < 0) {
        patience = Crew::slice;
      } else {
        watched.push_back(pollfd{crew_.watch(rank), POLLIN, 0});
      }
    }
    // An interruption is as good as an event.
    (void)poll(watched.data(), static_cast<nfds_t>(watched.size()), patience);
  }

  /// Notices who has ended. A death shows to the other ranks no earlier than here, so it is looked for until a look
  /// brings nothing new: whoever ended because of it is seen together with it.
  void look() {
    bool news = true, failure = false;
    const bool recovered = goes_on();
    while (news) {
      news = false;
      for (int rank = 0; rank < crew_.ranks(); ++rank) {
        if (!crew_.has_ended(rank)) continue;
        news = true;
        segments_.ended(rank, crew_.status(rank));
        if (well(rank) || pressure_.sent()) continue;
        failures_.push_back(rank);
        recovery_.failed(rank);
        failure = true;
      }
    }
    if (failure && (!pressure_.begun() || recovered)) pressure_.begin();
  }

  /// Whether the ranks that are left have taken it upon themselves to go on without those that have failed.
  bool goes_on() const {
    for (const int rank : crew_.all_running()) {
      if (recovery_.goes_on(rank)) return true;
    }
    return false;
  }

  bool well(int rank) const {
    if (crew_.lost(rank)) return record_of(rank).state.load() == RankRecord::left;
    return crew_.status(rank) == 0;
  }

  void overdue() {
    end_ = Moment();
    if (failures_.empty()) late_ = crew_.all_running();
    pressure_.kill();
    end_all(SIGKILL);
  }

  void end_all(int signal) {
    for (int rank = 0; rank < crew_.ranks(); ++rank) {
      crew_.send(rank, signal);
      if (signal == SIGTERM) crew_.send(rank, SIGCONT);  // a rank that is stopped would not get it
    }
  }

  const RankRecord& record_of(int rank) const { return segments_.header().record(rank); }

  bool reported(int rank) const { return record_of(rank).reported.load(std::memory_order_acquire) != 0; }

  /// Whether a report only says that somebody else has failed.
  static bool echo(const Report& report) {
    return report.code == Code::aborted ? !report.ranks.empty() || !report.origin.empty()
                                        : report.code == Code::peer_left || !report.origin.empty();
  }

  /// Throws what is wrong, if anything is: the first cause, once.
  void judge() const {
    if (!late_.empty()) {
      Report report;
      report.code = Code::timed_out;
      report.operation = "launch";
      report.expected = "that all ranks end within " + seconds_text(options_.deadline);
      report.found = ranks_text(late_) + " still running, now killed";
      report.remedy = "look at what they wait for, or allow more time";
      report.ranks.assign(late_.begin(), late_.end());
      throw Error(std::move(report));
    }
    for (const int rank : failures_) {
      if (!crew_.lost(rank) && WIFSIGNALED(crew_.status(rank))) fail_of(rank);
    }
    const std::uint32_t failed = segments_.header().failed.load();
    if (failed >= 1 && failed <= static_cast<std::uint32_t>(crew_.ranks()))
      rethrow(static_cast<int>(failed) - 1, false);
    for (int rank = 0; rank < crew_.ranks(); ++rank) rethrow(rank, false);
    for (const int rank : failures_) {
      if (!reported(rank)) fail_of(rank);
    }
    for (int rank = 0; rank < crew_.ranks(); ++rank) rethrow(rank, true);
    if (!failures_.empty()) fail_of(failures_.front());
  }

  /// Throws what a rank has reported, if it has. echoes: also if that only says that another one has failed.
  void rethrow(int rank, bool echoes) const {
    if (!reported(rank)) return;
    const Report report = record_of(rank).report.unpack();
    if (echoes || !echo(report)) throw Error(report);
  }

  [[noreturn]] void fail_of(int rank) const {
    Report report;
    report.code = Code::peer_left;
    report.operation = "launch";
    report.ranks = {rank};
    report.found = "rank " + std::to_string(rank) + " (pid " + std::to_string(crew_.pid(rank)) + ") ";
    report.found += crew_.lost(rank) ? "has ended, and something else in this process has taken its exit status"
                                     : ending_text(crew_.status(rank));
    for (int other = 0; other < crew_.ranks(); ++other) {
      if (other == rank || !reported(other)) continue;
      const Report seen = record_of(other).report.unpack();
      if (seen.operation.empty() || seen.sequence == 0) continue;
      report.found += ", as rank " + std::to_string(other) + " noticed in " + seen.operation + ", call " +
                      std::to_string(seen.sequence);
      break;
    }
    report.remedy = "look at its output, or run it in a debugger";
    throw Error(std::move(report));
  }

  ChildrenSeen seen_;
  ProcessOptions options_;
  ProcessBody body_;
  mutable Segments segments_;
  Crew crew_;  // ends before the segments do
  Recovery recovery_;
  Moment end_;
  Pressure pressure_;
  List<int> failures_;  ///< in the order in which they were seen
  List<int> late_;
};

/// Forks `ranks` processes of this one, calls body in each, and returns when all have ended.
///
/// The ranks inherit everything; output goes where that of this process goes, input to rank 0 alone. They end by _exit,
/// after a flush of stdio: no destructor of static objects runs in them (std::cout flushes only while it is tied to
/// stdio). They die with the thread that has called this. No other thread of this process may hold a lock that body
/// needs; memory, stdio and the loader take care of themselves.
/// Errors: if a rank fails, the others have `grace` to end by themselves, or for one of them to call shrink: then all
/// have as long as any that has called it runs. Then they are ended; when all have, the first cause is thrown once, as
/// the rank has reported it, or as `peer_left` if it has ended without a report. `timed_out` at the deadline, which
/// names the ranks that were running; all are killed then. `out_of_memory` if processes or their shared memory cannot
/// be created. `invalid_argument` for impossible numbers. No process is left in any case.
template <class = void>
void launch_processes(int ranks, const ProcessOptions& options, ProcessBody body) {
  if (ranks < 1 || ranks > Control::most_ranks) {
    fail("launch", "1 to " + std::to_string(Control::most_ranks) + " ranks", std::to_string(ranks),
         "choose another number of ranks");
  }
  const auto check = [](double seconds, const char* what) {
    if (!(seconds >= 0)) {
      fail("launch", std::string(what) + " of 0 seconds or more", std::to_string(seconds), "choose another time");
    }
  };
  check(options.deadline, "a deadline");
  check(options.grace, "a time of grace");
  check(options.kill_after, "a time until SIGKILL");
  ProcessJob(ranks, options, body).run();
}

}  // namespace meshwise::detail
