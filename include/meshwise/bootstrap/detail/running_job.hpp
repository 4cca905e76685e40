// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "meshwise/bootstrap/detail/core_shares.hpp"
#include "meshwise/bootstrap/detail/crew.hpp"
#include "meshwise/bootstrap/detail/guard.hpp"
#include "meshwise/bootstrap/detail/job_outputs.hpp"
#include "meshwise/bootstrap/detail/pressure.hpp"
#include "meshwise/bootstrap/detail/recovery.hpp"
#include "meshwise/bootstrap/detail/signal_inbox.hpp"
#include "meshwise/bootstrap/detail/system.hpp"
#include "meshwise/bootstrap/detail/terminal_input.hpp"
#include "meshwise/bootstrap/detail/text.hpp"
#include "meshwise/bootstrap/launcher_options.hpp"
#include "meshwise/core/detail/list.hpp"
#include "meshwise/fabric/shared_memory/control.hpp"
#include "meshwise/fabric/shared_memory/segments.hpp"

namespace meshwise::detail {

/// What a rank of a launcher runs, once its input, output, signals and processors are as they should be. It returns
/// the exit code; `trouble`: why it could not become the program that it should, as errno says it.
struct RankTask {
  int (*call)(void* object, int rank, Segments& segments, int& trouble);
  void* object;
};

/// One job of a launcher, from its first process to its last line.
///
/// One thread, which waits in one place. Whatever wakes it, it first takes from the outputs what is there, then looks
/// who has ended, and only then passes the lines on: what a rank writes because another has died cannot come before
/// what is said of that one.
class RunningJob {
 public:
  /// what: is started, for messages.
  RunningJob(const LauncherOptions& options, std::string what, RankTask task)
      : options_(options),
        what_(std::move(what)),
        task_(task),
        guard_("Launcher", options.ranks),
        segments_(make_segments()),
        inbox_("Launcher"),
        crew_(options.ranks),
        recovery_(segments_.header(), options.ranks),
        pressure_(options.grace, options.kill_after),
        outputs_(options.ranks, options.label, options.name) {
    if (options.bind == Bind::core) processors_ = allowed_processors();
  }

  /// The exit code of the job.
  int run() {
    for (int rank = 0; rank < crew_.ranks(); ++rank) start(rank);
    if (options_.timeout > 0) end_ = Moment::in(options_.timeout);
    while (!finished()) {
      wait();
      answer_signals();
      input_.pass();
      take_outputs();
      look();
      outputs_.pass([this](int rank) { return heard(rank); });
      press();
    }
    end_groups();
    for (int rank = 0; rank < crew_.ranks(); ++rank) outputs_.drain(rank);
    finish_printing();
    return code_ != 0 ? code_ : outputs_.loss();
  }

 private:
  static constexpr double leftover_patience = 0.5;  ///< for outputs that others hold open once all ranks have ended
  static constexpr double cause_patience = 1;       ///< for the rank that says to be the cause, to end

  // --- the beginning

  /// Each rank needs two pipes, an arena and a watch; the limit that shells set is for less.
  Segments make_segments() {
    getrlimit(RLIMIT_NOFILE, &files_before_);
    rlimit more = files_before_;
    const auto needed = static_cast<rlim_t>(6 * options_.ranks + 64);
    if (more.rlim_cur < needed) {
      more.rlim_cur = needed < more.rlim_max ? needed : more.rlim_max;
      setrlimit(RLIMIT_NOFILE, &more);
    }
    return Segments::create(options_.ranks);
  }

  void start(int rank) {
    Pipe out = Pipe::make("Launcher");
    Pipe err = Pipe::make("Launcher");
    const Descriptor in = rank == 0 ? input_.connect("Launcher") : Descriptor();
    starting_[0] = in.get();
    starting_[1] = out.writes.get();
    starting_[2] = err.writes.get();
    outputs_.connect(rank, std::move(out.reads), std::move(err.reads));
    if (const int error = crew_.start(rank, CrewTask{begin, this})) {
      fail_by_system("Launcher", "cannot fork rank " + std::to_string(rank) + " of " + std::to_string(crew_.ranks()),
                     error, "start fewer ranks, or raise the limit of processes (ulimit -u)");
    }
    setpgid(crew_.pid(rank), crew_.pid(rank));  // both sides, so that none depends on the other being first
    guard_.watch(rank, crew_.pid(rank));
  }

  static int begin(void* object, int rank) {
    RunningJob& job = *static_cast<RunningJob*>(object);
    setpgid(0, 0);
    job.guard_.watch(rank, getpid());
    if (rank > 0) job.starting_[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (const int one : {0, 1, 2}) {
      const int from = job.starting_[one];
      if (from < 0 && one == 0 && rank == 0) continue;  // inherited
      if (dup2(from, one) < 0) return 1;
      close(from);
    }
    job.input_.close();
    job.outputs_.leave();
    job.crew_.leave();
    job.guard_.leave();
    setrlimit(RLIMIT_NOFILE, &job.files_before_);
    if (!job.processors_.empty()) run_on(core_share_of(job.processors_, job.crew_.ranks(), rank));
    job.inbox_.restore();
    int trouble = 0;
    const int code = job.task_.call(job.task_.object, rank, job.segments_, trouble);
    if (trouble != 0) job.guard_.set_failed(rank, trouble);
    return code;
  }

  // --- waiting

  bool finished() {
    if (pressure_.hopeless()) {
      outputs_.say(ranks_text(crew_.all_running()) + " did not end in spite of SIGKILL");
      return true;
    }
    if (!crew_.all_running().empty()) return false;
    if (outputs_.open() && !leftover_.set()) leftover_ = Moment::in(leftover_patience);
    return !outputs_.open() || leftover_.come();
  }

  void wait() {
    polled_.clear();
    // The outputs before the ends: what is written because of an end is not seen before it.
    outputs_.watch(polled_, [this](int rank) { return heard(rank); });
    polled_.push_back({inbox_.descriptor(), POLLIN, 0});
    int patience = -1;
    bool groups = false;
    for (int rank = 0; rank < crew_.ranks(); ++rank) {
      if (crew_.running(rank)) {
        if (crew_.watch(rank) >= 0) {
          polled_.push_back({crew_.watch(rank), POLLIN, 0});
        } else {
          patience = Crew::slice;
        }
      } else {
        groups = groups || guard_.group(rank) != 0;
      }
    }
    if (groups && patience < 0) patience = 1000;
    for (const Moment& moment : {end_, leftover_, held_until_}) {
      if (!moment.come()) moment.limit(patience);
    }
    pressure_.limit(patience);
    input_.watch(polled_, patience);
    (void)poll(polled_.data(), static_cast<nfds_t>(polled_.size()), patience);
  }

  /// Whether a rank is listened to: not while another one is to speak first.
  bool heard(int rank) const { return !holding() || rank == cause(); }

  /// The rank that has told the others that it fails; negative if none has.
  int cause() const {
    const std::uint32_t failed = segments_.header().failed.load(std::memory_order_acquire);
    return failed <= static_cast<std::uint32_t>(crew_.ranks()) ? static_cast<int>(failed) - 1 : -1;
  }

  /// Whether that rank is about to end, and what the others say of it waits.
  bool holding() const {
    const int rank = cause();
    return rank >= 0 && !said_ && held_until_.set() && !held_until_.come() && crew_.running(rank);
  }

  // --- what may have happened

  void take_outputs() {
    outputs_.take([this](int rank) { return heard(rank); });
    if (!held_until_.set() && cause() >= 0) held_until_ = Moment::in(cause_patience);
  }

  void look() {
    // Until a look brings nothing new: who ended because of another one is seen together with it.
    bool news = true;
    const bool recovered = goes_on();
    while (news) {
      news = false;
      for (int rank = 0; rank < crew_.ranks(); ++rank) {
        if (!crew_.running(rank)) {
          if (guard_.group(rank) != 0 && kill(-guard_.group(rank), 0) != 0) guard_.forget(rank);
          continue;
        }
        if (!crew_.has_ended(rank)) continue;
        news = true;
        segments_.ended(rank, crew_.status(rank));
        if (rank == 0) input_.close();
        if (crew_.status(rank) == 0 || pressure_.sent()) continue;
        failures_.push_back(rank);
        recovery_.failed(rank);
      }
    }
    if (failures_.empty() || (holding() && !killed_by_surprise(first_failure()))) return;
    if (!said_) {
      said_ = true;
      tell(first_failure());
      code_ = code_of(first_failure());
      if (options_.keep_going) {
        for (const int rank : failures_) {
          if (rank != first_failure()) tell(rank);
        }
      } else {
        pressure_.begin();
      }
    } else if (options_.keep_going || recovered) {
      for (const int rank : failures_) tell(rank);
      if (!options_.keep_going) pressure_.begin();
    }
    failures_.clear();
  }

  /// Whether the ranks that are left have taken it upon themselves to go on without those that have failed.
  bool goes_on() const {
    for (const int rank : crew_.all_running()) {
      if (recovery_.goes_on(rank)) return true;
    }
    return false;
  }

  bool killed_by_surprise(int rank) const {
    return WIFSIGNALED(crew_.status(rank)) && WTERMSIG(crew_.status(rank)) != SIGABRT;
  }

  /// Of those that are seen together: one that was killed had no say, then the one that the ranks know as the first.
  int first_failure() const {
    int best = failures_[0];
    const auto weight = [this](int rank) {
      return killed_by_surprise(rank) ? 0 : rank == cause() ? 1 : WIFSIGNALED(crew_.status(rank)) ? 2 : 3;
    };
    for (const int rank : failures_) {
      if (weight(rank) < weight(best)) best = rank;
    }
    return best;
  }

  /// The last words of a rank, then what became of it.
  void tell(int rank) {
    outputs_.drain(rank);
    const int error = guard_.failed(rank);
    outputs_.say(error != 0 ? "cannot execute " + quoted(what_) + ": " + system_error(error)
                            : "rank " + std::to_string(rank) + " (pid " + std::to_string(crew_.pid(rank)) + ") " +
                                  ending_text(crew_.status(rank)));
  }

  int code_of(int rank) const {
    const int error = guard_.failed(rank);
    if (error != 0) return error == ENOENT ? 127 : 126;
    return exit_code(crew_.status(rank));
  }

  // --- what is sent to ranks

  void send(int rank, int signal) {
    const int group = guard_.group(rank);
    if (group > 1) {
      kill(-group, signal);
    } else {
      crew_.send(rank, signal);
    }
  }

  void send_all(int signal) {
    for (const int rank : crew_.all_running()) {
      send(rank, signal);
      if (signal == SIGTERM) send(rank, SIGCONT);  // a rank that is stopped would not get it
    }
  }

  void answer_signals() {
    while (true) {
      const int signal = inbox_.next();
      if (signal == 0) return;
      if (signal == SIGINT) {
        if (interrupted_.set() && !interrupted_.come()) {
          outputs_.say("interrupted twice within a second: SIGKILL to all ranks");
          give_up(128 + SIGINT);
          pressure_.kill();
          send_all(SIGKILL);
        }
        interrupted_ = Moment::in(1);
      }
      for (const int rank : crew_.all_running()) send(rank, signal);
      if (signal == SIGTSTP) raise(SIGSTOP);
      const bool ends = signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
      if (ends && crew_.all_running().empty()) given_up_ = signal;
    }
  }

  /// From here on it is the launcher that ends the job.
  void give_up(int code) {
    if (!said_) code_ = code;
    said_ = true;
  }

  void press() {
    const bool ends = end_.come();
    if (ends) end_ = Moment();
    if (ends && !crew_.all_running().empty()) {
      outputs_.say("the job did not end within " + seconds_text(options_.timeout) +
                   "; still running: " + ranks_text(crew_.all_running()));
      give_up(124);
      if (!pressure_.begun() || goes_on()) pressure_.ask();
    }
    if (goes_on()) pressure_.postpone();
    const int signal = pressure_.due();
    if (signal == 0 || crew_.all_running().empty()) return;
    outputs_.say(ranks_text(crew_.all_running()) + " still running: " + (signal == SIGTERM ? "SIGTERM" : "SIGKILL"));
    send_all(signal);
  }

  // --- the end

  /// What ranks have started and left behind.
  void end_groups() {
    for (int rank = 0; rank < crew_.ranks(); ++rank) {
      if (guard_.group(rank) > 1) kill(-guard_.group(rank), SIGKILL);
    }
  }

  /// As long as the reader takes, as any program would wait; a signal ends it.
  void finish_printing() {
    while (given_up_ == 0) {
      if (outputs_.print()) return;
      polled_.clear();
      outputs_.watch(polled_, [](int) { return false; });
      polled_.push_back({inbox_.descriptor(), POLLIN, 0});
      (void)poll(polled_.data(), static_cast<nfds_t>(polled_.size()), -1);
      answer_signals();
    }
    if (code_ == 0) code_ = 128 + given_up_;
  }

  const LauncherOptions& options_;
  std::string what_;
  RankTask task_;
  rlimit files_before_{};
  Guard guard_;  // before there is anything that it could inherit
  Segments segments_;
  SignalInbox inbox_;
  Crew crew_;  // ends before what it is about
  Recovery recovery_;
  Pressure pressure_;
  JobOutputs outputs_;
  TerminalInput input_;
  List<Processor> processors_;
  int starting_[3] = {-1, -1, -1};  ///< what becomes 0, 1 and 2 of the rank that is being started
  List<pollfd> polled_;
  List<int> failures_;  ///< in the order in which they were seen, before anybody was sent a signal
  bool said_ = false;   ///< why the job fails
  int code_ = 0;
  int given_up_ = 0;
  Moment end_;
  Moment leftover_;
  Moment held_until_;
  Moment interrupted_;
};

}  // namespace meshwise::detail
