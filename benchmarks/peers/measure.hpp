// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "../bench/copy_limit.hpp"
#include "../bench/cores.hpp"
#include "../bench/round_trip.hpp"
#include "../bench/statistics.hpp"
#include "bars.hpp"
#include "contestants.hpp"
#include "options.hpp"
#include "point.hpp"

namespace peers {

/// Measures points for one number of ranks: scouts all settings of the peers, then lets the best two and meshwise take
/// turns.
class Measurement {
 public:
  /// ours: seats of meshwise, the kind of buffers of each. peers: seats of the others.
  Measurement(Contestants& contestants, const Options& options, std::vector<std::pair<int, bool>> ours,
              std::vector<int> peers)
      : contestants_(contestants),
        options_(options),
        ours_(std::move(ours)),
        peers_(std::move(peers)),
        cores_(harness::usable_core_numbers()),
        limit_(cores_, static_cast<std::size_t>(contestants.ranks())) {}

  std::vector<Point> points(Operation operation, std::size_t bytes, bool rewritten) {
    what_ = Command{Task::time, operation, bytes, 0, 0, rewritten ? 1U : 0U};
    notes_.clear();
    std::vector<Runner> ours, others;
    for (const auto& [seat, foreign] : ours_) prepare(seat, ours);
    for (const int seat : peers_) prepare(seat, others);
    const std::vector<std::pair<std::string, double>> scouted = scout(others);
    std::vector<Runner> runners = ours;
    for (std::size_t k = 0; k < others.size(); ++k) {
      if (k < 2) {
        runners.push_back(others[k]);
      } else if (large()) {
        release(others[k].seat);
      }
    }
    const double before = copy_rate();
    take_turns(runners, ours.empty() || others.empty());
    const double limit = std::max(before, copy_rate());
    for (std::string& note : contestants_.news()) notes_.push_back(std::move(note));
    std::vector<Point> found;
    for (const auto& [seat, foreign] : ours_) {
      Point point = judged(runners, seat, ours.size());
      point.foreign = foreign;
      point.scouted = scouted;
      if (limit > 0 && point.us > 0) {
        point.limit_gbs = limit * 1e-9;
        point.of_limit = least_traffic(operation, bytes, point.ranks) / (point.us * 1e-6) / limit * 100;
      }
      point.bar = foreign ? foreign_bar(operation, bytes) : registered_bar(operation, point.ranks, bytes);
      found.push_back(std::move(point));
    }
    if (large()) {
      for (const Runner& runner : runners) release(runner.seat);
    }
    return found;
  }

 private:
  struct Runner {
    int seat = 0;
    int iterations = 1;  ///< of a batch
    int warmups = 1;
    double estimate = 0;
    std::vector<double> batches;  ///< of the rounds, us
  };
  struct Round {
    double before, after;  ///< round trips, ns
    bool alone;            ///< nobody else wanted a core when it began or ended
  };

  /// What a copy of as many bytes is done at, bytes read plus written per second.
  double copy_rate() {
    if (what_.operation == Operation::barrier) return 0;
    return limit_.rate(least_traffic(what_.operation, what_.bytes, contestants_.ranks())).best();
  }

  /// What is kept in memory for nothing would be missed.
  bool large() const { return what_.bytes >= std::size_t{4} << 20; }

  void release(int seat) { contestants_.perform(seat, {Task::release, what_.operation, what_.bytes, 0, 0, 0}, 20); }

  /// Checks the results of a contestant and finds how long it takes; it runs if all is well.
  void prepare(int seat, std::vector<Runner>& runners) {
    Contestant& one = contestants_[seat];
    if (!one.takes_part()) return;
    const double patience = 20 + static_cast<double>(what_.bytes) * contestants_.ranks() * 1e-8;
    Command check = what_;
    check.task = Task::check;
    const Contestants::Batch result = contestants_.perform(seat, check, patience);
    if (result.cannot) return;
    if (!one.takes_part()) return;
    if (result.wrong != 0) {
      notes_.push_back(one.name + ": " + std::to_string(result.wrong) + " wrong elements");
      return;
    }
    Runner runner;
    runner.seat = seat;
    runner.iterations = 3;
    runner.estimate = batch(runner).microseconds;
    if (runner.estimate < 5e3) {
      runner.iterations = runner.estimate < 100 ? 30 : 5;
      runner.estimate = std::min(runner.estimate, batch(runner).microseconds);
    }
    if (!one.takes_part() || runner.estimate <= 0) return;
    const double fitting = options_.milliseconds * 1e3 / runner.estimate;
    const double least = runner.estimate < 5e4 ? 3 : 1;
    runner.iterations = static_cast<int>(std::clamp(fitting, least, 2000.0));
    runner.warmups = std::clamp(runner.iterations / 10, 1, 50);
    runners.push_back(runner);
  }

  Contestants::Batch batch(const Runner& runner) {
    Command command = what_;
    command.iterations = runner.iterations;
    command.warmups = runner.warmups;
    const double calls = static_cast<double>(runner.iterations + runner.warmups);
    return contestants_.perform(
        runner.seat, command,
        10 + 50 * calls * std::max(runner.estimate, 100.0) * 1e-6 + static_cast<double>(what_.bytes) * 1e-8 * calls);
  }

  /// Sorts the peers, the best first, after a few batches of each, all in turn; says what each took. Those that are far
  /// behind at once are not tried again.
  std::vector<std::pair<std::string, double>> scout(std::vector<Runner>& others) {
    double best = 1e30;
    for (const Runner& other : others) best = std::min(best, other.estimate);
    for (int repetition = 0; repetition < 3; ++repetition) {
      for (Runner& other : others) {
        if (other.estimate > 3 * best && other.estimate > 20) continue;
        const double took = batch(other).microseconds;
        if (took > 0) other.batches.push_back(took);
      }
    }
    for (Runner& other : others) {
      if (!other.batches.empty()) other.estimate = harness::median(other.batches);
      other.batches.clear();
    }
    others.erase(std::remove_if(others.begin(), others.end(),
                                [&](const Runner& other) { return !contestants_[other.seat].takes_part(); }),
                 others.end());
    std::sort(others.begin(), others.end(), [](const Runner& a, const Runner& b) { return a.estimate < b.estimate; });
    std::vector<std::pair<std::string, double>> scouted;
    for (const Runner& other : others) scouted.emplace_back(contestants_[other.seat].name, other.estimate);
    return scouted;
  }

  /// Whether no other program wants a core now, all ranks being asleep.
  static bool alone_here() {
    std::ifstream file("/proc/loadavg");
    std::string skipped;
    int running = 1;  // this one
    file >> skipped >> skipped >> skipped >> running;
    return running <= 1;
  }

  /// Rounds in which each runs a batch, in one order and then in the other, until there are enough of one placement.
  void take_turns(std::vector<Runner>& runners, bool alone) {
    rounds_.clear();
    const int most = alone ? options_.pairs : 3 * options_.pairs;
    double before = harness::round_trip(cores_);
    bool alone_before = alone_here();
    for (int round = 0; round < most && enough() < options_.pairs; ++round) {
      for (std::size_t k = 0; k < runners.size(); ++k) {
        Runner& runner = runners[round % 2 == 0 ? k : runners.size() - 1 - k];
        runner.batches.push_back(batch(runner).microseconds);
      }
      const double after = harness::round_trip(cores_);
      const bool alone_after = alone_here();
      rounds_.push_back({before, after, options_.busy || (alone_before && alone_after)});
      before = after;
      alone_before = alone_after;
    }
  }

  static bool of_placement(const Round& round, const char* placement) {
    return round.alone && harness::placement_between(round.before, round.after) == placement;
  }
  int rounds_of(const char* placement) const {
    return static_cast<int>(std::count_if(rounds_.begin(), rounds_.end(),
                                          [&](const Round& round) { return of_placement(round, placement); }));
  }
  int enough() const { return std::max(rounds_of("near"), rounds_of("far")); }

  /// Compares meshwise on one seat with the better peer, over the rounds of the placement that has most.
  Point judged(const std::vector<Runner>& runners, int seat, std::size_t ours) const {
    Point point;
    point.operation = what_.operation;
    point.ranks = contestants_.ranks();
    point.bytes = what_.bytes;
    point.rewritten = what_.rewrite != 0;
    point.notes = notes_;
    if (2 * enough() >= options_.pairs) point.placement = rounds_of("near") >= rounds_of("far") ? "near" : "far";
    const bool all = point.placement.empty();
    const auto counts = [&](const Round& round) { return all || of_placement(round, point.placement.c_str()); };
    std::vector<double> trips;
    for (const Round& round : rounds_) {
      if (counts(round)) trips.push_back((round.before + round.after) / 2);
    }
    point.dropped = static_cast<int>(rounds_.size() - trips.size());
    point.round_trip = harness::median(trips);
    if (all) {
      const auto disturbed =
          std::count_if(rounds_.begin(), rounds_.end(), [](const Round& round) { return !round.alone; });
      point.placement = 2 * disturbed > static_cast<std::ptrdiff_t>(rounds_.size()) ? "busy" : "mixed";
    }
    const auto valid_batches = [&](const Runner& runner) {
      std::vector<double> valid;
      for (std::size_t k = 0; k < rounds_.size(); ++k) {
        if (counts(rounds_[k]) && runner.batches[k] > 0) valid.push_back(runner.batches[k]);
      }
      return valid;
    };
    const Runner* own = nullptr;
    const Runner* best = nullptr;
    for (std::size_t k = 0; k < runners.size(); ++k) {
      const std::vector<double> valid = valid_batches(runners[k]);
      if (valid.empty()) continue;
      const double middle = harness::median(valid);
      if (runners[k].seat == seat) {
        own = &runners[k];
        point.us = middle;
      } else if (k >= ours && (best == nullptr || middle < point.peer_us)) {
        best = &runners[k];
        point.peer_us = middle;
      }
    }
    if (best != nullptr) point.peer = contestants_[best->seat].name;
    if (best == nullptr || own == nullptr) return point;
    for (std::size_t k = 0; k < rounds_.size(); ++k) {
      const bool both = best->batches[k] > 0 && own->batches[k] > 0;
      if (both && counts(rounds_[k])) point.ratios.push_back(best->batches[k] / own->batches[k]);
    }
    point.ratio = harness::median(point.ratios);
    point.interval = harness::median_interval(point.ratios);
    return point;
  }

  Contestants& contestants_;
  const Options& options_;
  std::vector<std::pair<int, bool>> ours_;
  std::vector<int> peers_;
  std::vector<int> cores_;
  harness::CopyLimit limit_;
  Command what_;
  std::vector<Round> rounds_;
  std::vector<std::string> notes_;
};

}  // namespace peers
