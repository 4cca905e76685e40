// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "caches.hpp"
#include "clock.hpp"
#include "statistics.hpp"
#include "verify.hpp"

namespace harness {
namespace {

constexpr int most_iterations = 2000;  // of those that the harness chooses
constexpr int most_series = 50;        // of calls back to back

class Measuring {
 public:
  Measuring(Stage& stage, meshwise::Communicator& world, const Work& work, const Options& options, State state)
      : stage_(stage), world_(world), work_(work), options_(options), state_(state), perform_(perform_of(work)) {}

  Timing run() {
    prepare(work_, 0);
    Timing timing;
    timing.measured = true;
    timing.moved = least_bytes(work_.verb, static_cast<double>(work_.bytes()), work_.ranks, work_.in_place);
    const double estimate = warm_up();
    timing.batch = batch_for(estimate);
    timing.iterations = iterations_for(estimate * timing.batch);
    singles(timing);
    if (state_ == State::warm) timing.time = back_to_back(timing.iterations * timing.batch);
    if (options_.checks > 0 && work_.verb != Verb::barrier) timing.wrong = check();
    return timing;
  }

 private:
  /// What comes before each call and does not count.
  void set_up() {
    if (state_ == State::warm) return;
    if (state_ == State::rewritten) return rewrite(work_.in, work_.bytes());
    flush_(work_.in, work_.bytes());
    if (!work_.in_place) flush_(work_.out, work_.bytes());
  }

  /// Nanoseconds of so many calls on this rank.
  std::int64_t timed(int calls) {
    const std::int64_t start = nanoseconds();
    for (int i = 0; i < calls; ++i) perform_(world_, work_);
    return nanoseconds() - start;
  }

  /// Nanoseconds of a call, about; the same on all ranks.
  double warm_up() {
    double least = 0;
    for (int k = 0; k < std::max(3, options_.warm_up); ++k) {
      set_up();
      stage_.start();
      const double took = stage_.greatest(static_cast<double>(timed(1)));
      if (k == 0 || took < least) least = took;
      if (k == 0 && took > 1e9 && options_.warm_up <= 5) break;
    }
    return std::max(least, 20.0);
  }

  int batch_for(double estimate) const {
    if (options_.batch > 0) return state_ == State::warm ? options_.batch : 1;
    if (state_ != State::warm || estimate >= 1000) return 1;
    return static_cast<int>(std::ceil(2000 / estimate));
  }

  int iterations_for(double estimate) const {
    if (options_.iterations > 0) return options_.iterations;
    const double fit = options_.seconds * 1e9 / estimate;
    return static_cast<int>(std::clamp(fit, estimate > 5e7 ? 5.0 : 20.0, double{most_iterations}));
  }

  void singles(Timing& timing) {
    std::int64_t* const mine = stage_.times(work_.rank);
    for (int k = 0; k < timing.iterations; ++k) {
      set_up();
      stage_.start();
      mine[k] = timed(timing.batch);
    }
    stage_.meet();
    std::vector<double> times = stage_.slowest(static_cast<std::size_t>(timing.iterations));
    for (double& time : times) time *= 1e-3 / timing.batch;
    stage_.meet();
    std::sort(times.begin(), times.end());
    timing.least = times.front();
    timing.median = percentile_of_sorted(times, 50);
    timing.most = percentile_of_sorted(times, 99);
    timing.time = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
    const Interval interval = median_interval(std::move(times));
    timing.low = interval.low;
    timing.high = interval.high;
  }

  /// Microseconds of a call among many: the median of several series, since what other programs do to one of them is
  /// not its cost.
  double back_to_back(int calls) {
    std::int64_t* const mine = stage_.times(work_.rank);
    const int series = std::clamp(calls / 10, 5, most_series);
    const int each = std::max(1, calls / series);
    for (int k = 0; k < series; ++k) {
      stage_.start();
      mine[k] = timed(each);
    }
    stage_.meet();
    const double time = median(stage_.slowest(static_cast<std::size_t>(series))) * 1e-3 / each;
    stage_.meet();
    return time;
  }

  std::int64_t check() {
    std::int64_t wrong = 0;
    for (int k = 0; k < options_.checks; ++k) {
      const std::uint32_t seed = static_cast<std::uint32_t>(k) + 1;
      prepare(work_, seed);
      stage_.meet();
      perform_(world_, work_);
      before_verification(work_);
      wrong += stage_.sum(count_wrong(work_, seed));
    }
    return wrong;
  }

  Stage& stage_;
  meshwise::Communicator& world_;
  const Work& work_;
  const Options& options_;
  State state_;
  Perform perform_;
  Flush flush_;
};

}  // namespace

std::size_t times_needed(const Options& options) {
  return static_cast<std::size_t>(std::max(options.iterations, most_iterations));
}

Timing measure(Stage& stage, meshwise::Communicator& world, const Work& work, const Options& options, State state) {
  return Measuring(stage, world, work, options, state).run();
}

}  // namespace harness
