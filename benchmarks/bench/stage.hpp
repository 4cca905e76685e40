// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "meeting.hpp"
#include "meshwise/collective/communicator.hpp"

namespace harness {

/// Another rank has failed, and with it the measurement.
class Stopped : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What the ranks of a job share to be measured, besides the library: meetings, times, and numbers to compare. In
/// memory of its own, whether ranks are threads or processes and whoever has started them.
class Stage {
 public:
  /// Collective over all ranks. most_times: how many times one rank can note.
  Stage(meshwise::Communicator& world, std::size_t most_times);
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  ~Stage();

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  std::size_t most_times() const { return most_times_; }

  /// The cores that the ranks may use, all together.
  const std::vector<int>& cores() const { return cores_; }

  /// Keeps this rank on a core, unless it has been given one by whoever started it.
  void bind();

  /// Errors: Stopped.
  void meet() {
    if (!area_->meeting.meet(static_cast<std::uint32_t>(ranks_), crowded_)) stopped();
  }

  /// The same before something that is timed: with a core for each, all leave at one moment of the clock.
  void start() {
    if (!area_->meeting.meet(static_cast<std::uint32_t>(ranks_), crowded_, crowded_ ? 0 : 600)) stopped();
  }

  /// Rank 0 does something while the others sleep.
  template <class F>
  void alone(const F& f) {
    const std::uint32_t rings = area_->bell.rings();
    meet();
    if (rank_ == 0) {
      f();
      area_->bell.ring();
    } else {
      area_->bell.sleep_until_after(rings);
    }
    if (area_->meeting.given_up()) stopped();
  }

  /// The largest, or the sum, of what all ranks say; on all of them.
  double greatest(double value);
  std::int64_t sum(std::int64_t value);

  /// Nanoseconds that a rank has noted; its own to write before a meeting, all to read after it.
  std::int64_t* times(int rank) { return times_ + static_cast<std::size_t>(rank) * most_times_; }

  /// For each k of the first `count`, the time of the slowest rank. After a meeting.
  std::vector<double> slowest(std::size_t count);

  /// Wakes all that wait, for good.
  void give_up() {
    area_->meeting.give_up();
    area_->bell.ring();
  }

 private:
  struct alignas(128) Slot {
    double value;
    std::int64_t count;
    cpu_set_t usable;
  };
  struct Area {
    Meeting meeting;
    Bell bell;
  };

  [[noreturn]] static void stopped();
  Slot& slot(int rank) { return slots_[rank]; }

  int rank_;
  int ranks_;
  bool crowded_ = false;
  std::size_t most_times_;
  std::size_t bytes_ = 0;
  void* memory_ = nullptr;
  Area* area_ = nullptr;
  Slot* slots_ = nullptr;
  std::int64_t* times_ = nullptr;
  std::vector<int> cores_;
};

}  // namespace harness
