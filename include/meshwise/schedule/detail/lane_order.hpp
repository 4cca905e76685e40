// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "meshwise/core/detail/list.hpp"
#include "meshwise/core/error.hpp"

namespace meshwise::detail {

constexpr void require_lanes(const char* function, int lanes) {
  if (lanes < 1) fail(function, "at least 1 lane", std::to_string(lanes), "lanes slice every block; 1 leaves it whole");
}

/// The one order in which every rank runs its rounds on several lanes: visit(round, lane) by round + lane, then lane,
/// so that a lane is in one round while the lane before it is in the next one.
template <class Visit>
constexpr void in_lane_order(int rounds, int lanes, Visit visit) {
  for (int sum = 0; sum < rounds + lanes - 1; ++sum) {
    const int first = sum - rounds + 1;
    for (int lane = first > 0 ? first : 0; lane < lanes && lane <= sum; ++lane) visit(sum - lane, lane);
  }
}

/// Where the steps of one rank lie when the same rounds run on several lanes. Filled round by round.
class LaneOrder {
 public:
  constexpr LaneOrder() { before_.push_back(0); }

  /// Ends a round after which the rank has performed `steps` steps on one lane.
  constexpr void end_round(int steps) { before_.push_back(steps); }

  /// The range of a round's steps on one lane.
  constexpr int begin(int round) const { return before_[static_cast<std::size_t>(round)]; }
  constexpr int end(int round) const { return before_[static_cast<std::size_t>(round) + 1]; }

  /// The index among all steps of that step of `lane` which has the index `step` where there is one lane.
  /// Cost: the logarithm of the number of rounds, and `lanes`.
  constexpr int index(int step, int lane, int lanes) const {
    const int rounds = static_cast<int>(before_.size()) - 1;
    int low = 0;
    for (int high = rounds; high - low > 1;) {
      const int middle = low + (high - low) / 2;
      (begin(middle) <= step ? low : high) = middle;
    }
    int result = step - begin(low);
    for (int other = 0; other < lanes; ++other) {
      const int earlier = low + lane - other + (other < lane ? 1 : 0);
      result += begin(earlier < 0 ? 0 : earlier > rounds ? rounds : earlier);
    }
    return result;
  }

 private:
  List<int> before_;  ///< steps before each round, and at last all of them
};

}  // namespace meshwise::detail
