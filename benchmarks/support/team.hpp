// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <benchmark/benchmark.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "meshwise/collective/barrier.hpp"
#include "meshwise/core/deadline.hpp"
#include "meshwise/fabric/thread/launch.hpp"

namespace bench {

/// The middle of some values (the upper one of two), 0 of none.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Calls of a function of this size that are timed together: enough that reading the clock does not count.
inline int batch_of(std::size_t bytes) {
  return bytes <= std::size_t{8} << 10 ? 100 : bytes <= std::size_t{512} << 10 ? 10 : 1;
}

/// Keeps the calling thread on a core of its own, if there is one for each rank. Otherwise two that yield to each other
/// may stay on one core as long as other work keeps the other busy, and then switching threads is all that is measured.
inline void keep_core(int rank, int ranks) {
  cpu_set_t usable;
  if (sched_getaffinity(0, sizeof usable, &usable) != 0 || CPU_COUNT(&usable) < ranks) return;
  int core = 0;
  for (int before = 0;; ++core) {
    if (CPU_ISSET(static_cast<std::size_t>(core), &usable) && before++ == rank) break;
  }
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(core), &one);
  sched_setaffinity(0, sizeof one, &one);
}

/// Ranks that live as long as one run of a benchmark: they start outside of the timing and stay in step.
///
/// `launch` starts them; in their program all ranks call `next`, `time` and `count` alike:
///   while (team.next(world, batch)) team.count(world, team.time(world, batch, [&] { ... }));
class Team {
 public:
  Team(benchmark::State& state, int ranks) : state_(state), ranks_(ranks), seconds_(static_cast<std::size_t>(ranks)) {}

  /// Runs program(Communicator&) on all ranks. An exception ends the benchmark and is what it reports.
  template <class Program>
  void launch(const Program& program) {
    try {
      meshwise::launch(ranks_, [&](meshwise::Communicator& world) {
        keep_core(world.rank(), ranks_);
        program(world);
      });
    } catch (const std::exception& error) {
      state_.SkipWithError(error.what());
    }
  }

  /// Whether Google Benchmark wants `batch` more iterations.
  bool next(meshwise::Communicator& world, int batch) {
    if (world.rank() == 0) more_ = state_.KeepRunningBatch(batch);
    barrier(world);
    const bool more = more_;
    barrier(world);
    return more;
  }

  /// Seconds that the slowest of the first `active` ranks takes for `batch` calls of f; the others sleep meanwhile.
  template <class F>
  double time(meshwise::Communicator& world, int batch, const F& f, int active) {
    const auto me = static_cast<std::size_t>(world.rank());
    seconds_[me].value = 0;
    if (me == 0) finished_ = 0;
    barrier(world);
    if (world.rank() < active) {
      const std::int64_t start = meshwise::monotonic_nanoseconds();
      for (int i = 0; i < batch; ++i) f();
      seconds_[me].value = static_cast<double>(meshwise::monotonic_nanoseconds() - start) * 1e-9;
      ++finished_;
    } else {
      const timespec pause{0, 200'000};
      while (finished_ < active) nanosleep(&pause, nullptr);
    }
    barrier(world);
    double slowest = 0;
    for (const Seconds& s : seconds_) slowest = std::max(slowest, s.value);
    barrier(world);
    return slowest;
  }
  /// The same for all ranks.
  template <class F>
  double time(meshwise::Communicator& world, int batch, const F& f) {
    return time(world, batch, f, world.size());
  }

  /// Makes this the time of the iterations that `next` began.
  void count(meshwise::Communicator& world, double seconds) {
    if (world.rank() == 0) state_.SetIterationTime(seconds);
  }

 private:
  struct alignas(128) Seconds {
    double value = 0;
  };

  benchmark::State& state_;
  int ranks_;
  bool more_ = false;
  std::atomic<int> finished_{0};
  std::vector<Seconds> seconds_;
};

/// The main function of a benchmark program: short runs unless told otherwise, since a run takes many sizes.
inline int main(int count, char** arguments) {
  std::string short_runs = "--benchmark_min_time=0.1";
  std::vector<char*> all{arguments[0], short_runs.data()};
  all.insert(all.end(), arguments + 1, arguments + count);
  int number = static_cast<int>(all.size());
  benchmark::Initialize(&number, all.data());
  if (benchmark::ReportUnrecognizedArguments(number, all.data())) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace bench
