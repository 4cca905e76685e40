// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../bench/clock.hpp"
#include "../bench/cores.hpp"
#include "../bench/statistics.hpp"
#include "board.hpp"
#include "job.hpp"
#include "settings.hpp"

namespace peers {

/// Thrown when a signal asks this program to end.
struct Interrupted {};

/// Signals only leave a note: what waits looks at it, and objects clean up.
class Interruption {
 public:
  Interruption() {
    struct sigaction action {};
    action.sa_handler = [](int) { noted() = 1; };
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
  }
  static void look() {
    if (noted() != 0) throw Interrupted{};
  }

 private:
  static volatile std::sig_atomic_t& noted() {
    static volatile std::sig_atomic_t flag = 0;
    return flag;
  }
};

/// One library in one setting, or meshwise on one kind of buffers, with its ranks asleep until it is their turn.
struct Contestant {
  std::string library;
  std::string name;
  Job job;
  std::string trouble;  ///< why it is out; empty while it takes part

  bool takes_part() const { return trouble.empty(); }
};

/// All contestants for one number of ranks, and what they share.
class Contestants {
 public:
  explicit Contestants(int ranks) : board_(SharedBoard::create()) {
    if (!board_.valid()) return;
    const std::vector<int> cores = harness::usable_core_numbers();
    board_->ranks = ranks;
    board_->cores = static_cast<std::int32_t>(std::min<std::size_t>(cores.size(), Board::most_cores));
    std::copy_n(cores.begin(), board_->cores, board_->core);
    std::int64_t least = 1'000'000;
    for (int k = 0; k < 1000; ++k) {
      const std::int64_t start = harness::nanoseconds();
      least = std::min(least, harness::nanoseconds() - start);
    }
    clock_cost_ = static_cast<double>(least);
  }
  Contestants(const Contestants&) = delete;
  Contestants& operator=(const Contestants&) = delete;
  ~Contestants() {
    for (std::size_t k = 0; k < all_.size(); ++k) command(static_cast<int>(k), {Task::leave, {}, 0, 0, 0, 0});
    for (auto& one : all_) one->job.ends_within(2);
  }

  bool valid() const { return board_.valid(); }
  int ranks() const { return board_->ranks; }
  bool crowded() const { return board_->crowded(); }
  /// What reading the clock twice costs, in nanoseconds: it is taken off every call.
  double clock_cost() const { return clock_cost_; }

  /// Starts one: run(board, seat) is what a forked child does. Nobody waits; see `await`.
  template <class Run>
  int add(std::string library, std::string name, const Run& run) {
    const int seat = static_cast<int>(all_.size());
    all_.push_back(std::make_unique<Contestant>());
    Contestant& one = *all_.back();
    one.library = std::move(library);
    one.name = std::move(name);
    const std::string path = board_.path();
    one.job = Job::start([&] {
      setenv("MESHWISE_PEERS_BOARD", path.c_str(), 1);
      setenv("MESHWISE_PEERS_SEAT", std::to_string(seat).c_str(), 1);
      return run(*board_, seat);
    });
    return seat;
  }

  int count() const { return static_cast<int>(all_.size()); }
  bool full() const { return count() == Board::most_seats; }
  Contestant& operator[](int seat) { return *all_[static_cast<std::size_t>(seat)]; }

  /// Waits until all ranks of a contestant are there; else it is out.
  void await(int seat, double seconds) {
    Contestant& one = (*this)[seat];
    const auto all_there = [&] { return board_->seats[seat].joined.load() == static_cast<std::uint32_t>(ranks()); };
    if (!wait(one, seconds, all_there)) out(seat, "could not be started");
  }

  struct Batch {
    double microseconds = 0;  ///< the median over its calls; 0: there is none
    std::uint32_t wrong = 0;
    bool cannot = false;  ///< has no such operation
    bool valid() const { return microseconds > 0; }
  };

  /// Lets one contestant do something while all others sleep. If it does not within the time it is out.
  Batch perform(int seat, const Command& what, double seconds) {
    Contestant& one = (*this)[seat];
    Batch batch;
    if (!one.takes_part()) return batch;
    Seat& place = board_->seats[seat];
    place.finished.store(0);
    place.wrong.store(0);
    place.cannot.store(0);
    command(seat, what);
    if (!wait(one, seconds, [&] { return place.finished.load() == static_cast<std::uint32_t>(ranks()); })) {
      out(seat,
          std::string("failed or hung in ") + name_of(what.operation) + " of " + std::to_string(what.bytes) + " B");
      return batch;
    }
    batch.wrong = place.wrong.load();
    batch.cannot = place.cannot.load() != 0;
    if (what.task != Task::time || batch.cannot) return batch;
    std::vector<double> slowest(static_cast<std::size_t>(what.iterations));
    for (int k = 0; k < what.iterations; ++k) {
      double most = 0;
      for (int rank = 0; rank < ranks(); ++rank) most = std::max(most, board_->nanoseconds[rank][k]);
      slowest[static_cast<std::size_t>(k)] = most;
    }
    batch.microseconds = std::max(harness::median(std::move(slowest)) - clock_cost_, 1.0) * 1e-3;
    return batch;
  }

  /// Ends a contestant.
  void out(int seat, const std::string& why) {
    Contestant& one = (*this)[seat];
    one.trouble = why;
    const bool running = one.job.running();
    if (!running) one.trouble += " (" + one.job.ending() + ")";
    one.job.stop();
    if (board_->seats[seat].texts.load() != 0) one.trouble += std::string(": ") + board_->seats[seat].text;
    const std::string words = one.job.last_words();
    if (!words.empty()) one.trouble += "\n" + words;
    news_.push_back(one.name + " " + one.trouble);
  }

  /// Who went out since this was asked last, and why.
  std::vector<std::string> news() { return std::exchange(news_, {}); }

 private:
  void command(int seat, const Command& what) {
    Seat& place = board_->seats[seat];
    place.command = what;
    place.turn.fetch_add(1, std::memory_order_release);
    wake(place.turn);
  }

  template <class Ready>
  bool wait(Contestant& one, double seconds, const Ready& ready) {
    double left = seconds;
    while (true) {
      const std::uint32_t seen = board_->done.load(std::memory_order_acquire);
      if (ready()) return true;
      Interruption::look();
      if (!one.job.running() && !ready()) return false;
      if (left <= 0) return false;
      const std::int64_t before = harness::nanoseconds();
      sleep_while(board_->done, seen, 0.2);
      // Time in which this program was stopped, and with it perhaps the others, does not count.
      left -= std::min(static_cast<double>(harness::nanoseconds() - before) * 1e-9, 0.4);
    }
  }

  SharedBoard board_;
  std::vector<std::unique_ptr<Contestant>> all_;
  std::vector<std::string> news_;
  double clock_cost_ = 0;
};

}  // namespace peers
