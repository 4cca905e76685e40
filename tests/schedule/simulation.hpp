// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "dice.hpp"
#include "meshwise/schedule/plan.hpp"
#include "meshwise/schedule/verify.hpp"

namespace meshwise::test {

constexpr std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// Ranks that execute their plans one event at a time: enter, begin a step, end it, leave. Moves are in flight
/// between begin and end; every touch of a buffer that is not there, and every overlap of moves in flight, is a
/// failure, and so are wrong blocks and wrong results. Lanes are slices of slots, hence separate memories.
class Simulation {
 public:
  explicit Simulation(const std::vector<Plan>& plans)
      : plans_(plans),
        shape_(plans[0].shape),
        memory_(at(plans[0].lanes), detail::Memory(shape_, std::vector<int>(plans.size(), plans[0].scratch_slots))),
        progress_(plans.size(), 0),
        in_flight_(plans.size(), 0),
        left_(plans.size(), 0),
        readers_(memory_.size(), std::vector<int>(memory_[0].places.size(), 0)),
        writers_(readers_) {}

  /// Whether `rank` has a next event that its waits allow.
  bool enabled(int rank) const {
    if (left_[at(rank)] != 0) return false;
    if (progress_[at(rank)] == 0 || in_flight_[at(rank)] != 0) return true;
    const Plan& plan = plans_[at(rank)];
    const int next = progress_[at(rank)] - 1;
    const std::vector<Wait>& waits =
        next < static_cast<int>(plan.steps.size()) ? plan.steps[at(next)].waits : plan.exit;
    return std::all_of(waits.begin(), waits.end(),
                       [&](const Wait& wait) { return progress_[at(wait.rank)] >= wait.step; });
  }

  void advance(int rank) {
    const Plan& plan = plans_[at(rank)];
    const int next = progress_[at(rank)] - 1;
    if (next < 0) {
      progress_[at(rank)] = 1;
    } else if (next == static_cast<int>(plan.steps.size())) {
      left_[at(rank)] = 1;
    } else if (in_flight_[at(rank)] == 0) {
      begin(plan.steps[at(next)]);
      in_flight_[at(rank)] = 1;
    } else {
      end(plan.steps[at(next)]);
      in_flight_[at(rank)] = 0;
      ++progress_[at(rank)];
    }
  }

  /// Runs random events until nothing is enabled; ranks are up to a thousand times slower than others.
  void run(Dice& dice) {
    std::vector<int> weights;
    for (std::size_t r = 0; r < plans_.size(); ++r) {
      constexpr int choices[] = {1, 30, 1000};
      weights.push_back(choices[dice.roll(3)]);
    }
    while (true) {
      int total = 0;
      for (int r = 0; r < shape_.ranks; ++r) total += enabled(r) ? weights[at(r)] : 0;
      if (total == 0) return;
      int ticket = dice.roll(total);
      for (int r = 0; r < shape_.ranks; ++r) {
        if (!enabled(r)) continue;
        ticket -= weights[at(r)];
        if (ticket >= 0) continue;
        advance(r);
        break;
      }
    }
  }

  /// Runs everybody as far as possible while `held` does not reach `progress`; if `begun`, its step before is in
  /// flight all the time.
  void hold(int held, int progress, bool begun) {
    for (bool moved = true; moved;) {
      moved = false;
      for (int r = 0; r < shape_.ranks; ++r) {
        while (enabled(r)) {
          if (r == held && progress_[at(r)] == progress - 1 && (!begun || progress == 1 || in_flight_[at(r)] != 0))
            break;
          advance(r);
          moved = true;
        }
      }
    }
  }

  bool finished() const {
    return std::all_of(left_.begin(), left_.end(), [](char left) { return left != 0; });
  }

  /// Whether all ranks left, nothing went wrong on the way, and the contract is met on every lane.
  bool good() const {
    if (failed_ || !finished()) return false;
    return std::all_of(memory_.begin(), memory_.end(), [this](const detail::Memory& memory) {
      Verdict verdict;
      detail::check_outputs(shape_, memory, verdict);
      return verdict.ok();
    });
  }

 private:
  template <class F>
  void each(const std::vector<Piece>& pieces, F f) {
    for (const Piece& piece : pieces) {
      for (int i = 0; i < piece.count; ++i) f(memory_[0].places.number(piece, i), i);
    }
  }

  void begin(const Step& step) {
    if (step.lane < 0 || at(step.lane) >= memory_.size()) {
      failed_ = true;
      return;
    }
    const Move& move = step.move;
    std::vector<int>& readers = readers_[at(step.lane)];
    std::vector<int>& writers = writers_[at(step.lane)];
    for (const auto* pieces : {&move.from, &move.to}) {
      for (const Piece& piece : *pieces) {
        if (progress_[at(piece.rank)] < 1 || left_[at(piece.rank)] != 0) failed_ = true;
      }
    }
    each(move.from, [&](std::size_t n, int) { failed_ = failed_ || writers[n] != 0; });
    each(move.to, [&](std::size_t n, int) { failed_ = failed_ || writers[n] != 0 || readers[n] != 0; });
    each(move.from, [&](std::size_t n, int) { ++readers[n]; });
    each(move.to, [&](std::size_t n, int) { ++writers[n]; });
  }

  void end(const Step& step) {
    if (step.lane < 0 || at(step.lane) >= memory_.size()) return;
    const Move& move = step.move;
    detail::Memory& memory = memory_[at(step.lane)];
    each(move.from, [&](std::size_t n, int i) {
      --readers_[at(step.lane)][n];
      const int value = memory.slots[n];
      if (value == detail::Symbols::undefined || memory.symbols.block(value) != move.block + i) failed_ = true;
    });
    each(move.to, [&](std::size_t n, int) { --writers_[at(step.lane)][n]; });
    for (const auto* pieces : {&move.from, &move.to}) {
      for (const Piece& piece : *pieces) failed_ = failed_ || left_[at(piece.rank)] != 0;
    }
    if (!failed_) memory.perform(move);
  }

  const std::vector<Plan>& plans_;
  Shape shape_;
  std::vector<detail::Memory> memory_;  ///< by lane
  std::vector<int> progress_;
  std::vector<char> in_flight_;
  std::vector<char> left_;
  std::vector<std::vector<int>> readers_;
  std::vector<std::vector<int>> writers_;
  bool failed_ = false;
};

}  // namespace meshwise::test
