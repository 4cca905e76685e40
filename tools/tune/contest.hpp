// SPDX-License-Identifier: Apache-2.0
// How meshwise-tune finds the best algorithm for one point: all against what the library does by itself.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "board.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/core/deadline.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/schedule/select.hpp"
#include "work.hpp"

namespace tune {

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// The lower end of the 95 % interval of a median, by order statistics: of fewer than 6 values nothing is known.
inline double least_median(std::vector<double> values) {
  if (values.size() < 6) return 0;
  std::sort(values.begin(), values.end());
  const auto number = static_cast<double>(values.size());
  const double place = std::floor((number - 1.96 * std::sqrt(number)) / 2);
  return values[place > 1 ? static_cast<std::size_t>(place) - 1 : 0];
}

/// A way to do a call, and what it took.
struct Contestant {
  meshwise::CollectiveOptions options;
  std::int64_t calls = 1;  ///< in a batch
  /// Of the first: what the library takes, if that has a name.
  meshwise::Algorithm usual = meshwise::Algorithm::automatic;
  std::vector<double> seconds{};  ///< of one call, by batch
};

/// All algorithms for a call, what the library does by itself first. selector: of a group of this size.
inline std::vector<Contestant> contestants(meshwise::Selector& selector, meshwise::Question question) {
  using meshwise::Algorithm;
  std::vector<Contestant> result(1);
  // Of small calls and of those between foreign buffers the library does something that has no name.
  constexpr std::uint64_t windows = 8192;
  const bool named = question.way() == meshwise::Way::messages || (question.memory && question.bytes > windows);
  meshwise::Choice usual{Algorithm::automatic, 0};
  if (named) usual = selector.choose(question);
  result.front().usual = usual.algorithm;
  for (int k = 1; k < meshwise::algorithm_count - 1; ++k) {
    question.wanted = static_cast<Algorithm>(k);
    const meshwise::AnyGenerator generator = selector.catalogue().find(question.wanted);
    if (generator.empty() || !generator.supports(question.shape)) continue;
    const bool several = generator.rounds(question.shape) > 1 && question.bytes >= (std::uint64_t{64} << 10);
    for (const int lanes : {1, 4, 16}) {
      if (lanes > 1 && !several) break;
      if (usual == meshwise::Choice{question.wanted, lanes}) continue;
      Contestant one;
      one.options.algorithm = question.wanted;
      one.options.lanes = lanes;
      result.push_back(one);
    }
  }
  return result;
}

/// Measures one point. All ranks of the group call it and find the same.
class Contest {
 public:
  Contest(Council& council, meshwise::Communicator& world, meshwise::Operation operation, const Buffers& buffers)
      : world_(world), council_(council), operation_(operation), buffers_(buffers) {}

  /// seconds: about how long. What cannot be measured in five times that is not known, and left to the library.
  Result hold(const std::vector<Contestant>& all, double seconds) {
    const std::int64_t start = meshwise::monotonic_nanoseconds();
    const auto late = [&](double times) {
      const double spent = static_cast<double>(meshwise::monotonic_nanoseconds() - start) * 1e-9;
      return council_.agree(spent > times * seconds ? 1 : 0) != 0;
    };
    // One batch in a contest takes about so long, so that there is time for some twenty of each.
    const double slice = std::clamp(seconds / 100, 0.1e-3, 20e-3);
    std::vector<Contestant> known{all.front()};
    double best = scout(known.front(), slice, 1e9);
    // Several lanes are tried of algorithms that are among the best with one.
    for (const bool several : {false, true}) {
      const std::vector<meshwise::Algorithm> good = several ? best_of(known) : std::vector<meshwise::Algorithm>();
      for (std::size_t k = 1; k < all.size(); ++k) {
        if ((all[k].options.lanes > 1) != several) continue;
        if (several && std::find(good.begin(), good.end(), all[k].options.algorithm) == good.end()) continue;
        if (late(4)) break;
        known.push_back(all[k]);
        best = std::min(best, scout(known.back(), slice, 2 * best));
      }
    }
    // Who is far behind is out, but for the first; three of the others stay.
    std::sort(known.begin() + 1, known.end(), faster);
    std::size_t kept = 1;
    while (kept < known.size() && kept < 4 && known[kept].seconds.front() < 1.3 * best) ++kept;
    known.resize(kept);
    for (Contestant& one : known) one.seconds.clear();
    for (int round = 0; kept > 1 && round < most_rounds; ++round) {
      if (late(round < least_rounds ? 5 : 1)) break;
      for (std::size_t k = 0; k < kept; ++k) {
        Contestant& one = known[(k + static_cast<std::size_t>(round)) % kept];
        one.seconds.push_back(batch(one));
      }
    }
    return judge(known);
  }

 private:
  static constexpr int least_rounds = 9;
  static constexpr int most_rounds = 51;
  static constexpr double least_gain = 1.02;

  /// Seconds of one call on average, of the slowest rank.
  double batch(const Contestant& one) {
    std::int64_t total = 0;
    for (std::int64_t k = 0; k < one.calls; ++k) {
      meshwise::barrier(world_);
      const std::int64_t begin = meshwise::monotonic_nanoseconds();
      perform(world_, operation_, buffers_, one.options);
      total += meshwise::monotonic_nanoseconds() - begin;
    }
    return council_.slowest(static_cast<double>(total) * 1e-9) / static_cast<double>(one.calls);
  }

  /// Makes its plan and finds out about how long one takes; hopeless: the time from which it does not matter.
  double scout(Contestant& one, double slice, double hopeless) {
    one.calls = 1;
    double seconds = batch(one);
    if (seconds < 20 * hopeless) seconds = batch(one);
    if (seconds < hopeless) {
      one.calls =
          std::clamp(static_cast<std::int64_t>(slice / std::max(seconds, 1e-7)), std::int64_t{1}, std::int64_t{2000});
      if (one.calls > 1) seconds = std::min(seconds, batch(one));
    }
    one.seconds.assign(1, seconds);
    return seconds;
  }

  static bool faster(const Contestant& a, const Contestant& b) { return a.seconds.front() < b.seconds.front(); }

  /// The two fastest of those that are known by name, and what the first of all stands for, if it has a name.
  static std::vector<meshwise::Algorithm> best_of(std::vector<Contestant> known) {
    std::vector<meshwise::Algorithm> result{known.front().usual};
    std::sort(known.begin() + 1, known.end(), faster);
    for (std::size_t k = 1; k < known.size() && k < 3; ++k) result.push_back(known[k].options.algorithm);
    return result;
  }

  static Result judge(const std::vector<Contestant>& all) {
    Result result;
    if (all.size() < 2 || all[0].seconds.size() < static_cast<std::size_t>(least_rounds)) return result;
    result.automatic = result.seconds = median(all[0].seconds);
    for (std::size_t k = 1; k < all.size(); ++k) {
      std::vector<double> ratios;
      for (std::size_t i = 0; i < all[k].seconds.size(); ++i) ratios.push_back(all[0].seconds[i] / all[k].seconds[i]);
      const double seconds = median(all[k].seconds);
      if (seconds >= result.seconds || least_median(std::move(ratios)) < least_gain) continue;
      result.algorithm = all[k].options.algorithm;
      result.lanes = all[k].options.lanes;
      result.seconds = seconds;
    }
    return result;
  }

  meshwise::Communicator& world_;
  Council& council_;
  meshwise::Operation operation_;
  Buffers buffers_;
};

}  // namespace tune
