// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "meshwise/layout/layout_value.hpp"
#include "meshwise/layout/transition_kind.hpp"

namespace meshwise {

/// One collective, or one local step, of the change from one layout to another.
///
/// Only the ranks that differ in nothing but the coordinates of `axes` have to do with each other. What it does follows
/// from the layouts before and after it; the name says which operation that is:
///   slice           `axes` are cut: each rank keeps its own part
///   reduce_scatter  the sums over `axes`, a run at the minor end of one dim afterwards, end as shards
///   all_reduce      the sums over `axes` end everywhere
///   all_gather      `axes`, a run at the minor end of one dim, leave it
///   all_to_all      `axes` leave the minor end of one dim and are the minor end of another one, in the same order
///   exchange        any other change of shards: each rank pulls what it lacks
///   keep_first      `axes` become Partial: coordinate 0 of all of them keeps the value, the others hold the identity
///   pad             `axes`, the minor ends of dims, become Partial: the identity outside the own part
struct PlanStep {
  Transition what = Transition::equal;
  std::uint8_t axes = 0;  ///< bit a for axis a
  /// All axes that take part cut contiguously before and after, so that blocks are runs of what the other axes leave.
  /// If not, positions say what is where; a reduce_scatter or all_gather is then over one axis.
  bool dense = true;
  double cost = 0;  ///< bytes received per rank as a share of the whole tensor, every axis counted as 4
  LayoutValue after;
};

/// How one layout becomes another: steps in order.
///
/// Chosen by bytes received per rank when every axis counts as 4, then for fewer collectives, then for collectives with
/// a name. Only axes on which the ends differ take part. With up to four of them no other plan costs less, and the cost
/// obeys the triangle inequality; with more the places of slices and scattered sums are chosen one after the other.
/// What a program says at run time is no part of it: where the same axis counts a dim at both ends, and the counts
/// differ, one exchange follows the steps (see recount_volume).
struct LayoutPlan {
  static constexpr int most_steps = LayoutValue::most_axes + 5;

  bool possible = false;  ///< false if a Partial would have to change its reduction
  int count = 0;
  double cost = 0;  ///< the sum of those of the steps
  LayoutValue from;
  LayoutValue to;
  PlanStep steps[most_steps]{};

  constexpr const PlanStep* begin() const { return steps; }
  constexpr const PlanStep* end() const { return steps + count; }
  /// The layout before a step.
  constexpr const LayoutValue& before(int step) const { return step == 0 ? from : steps[step - 1].after; }
  /// Whether ranks have to hear from each other.
  constexpr bool communicates() const {
    for (const PlanStep& step : *this) {
      if (meshwise::communicates(step.what)) return true;
    }
    return false;
  }
  /// Whether it is nothing but one step of this name.
  constexpr bool is(Transition what) const { return count == 1 && steps[0].what == what; }
};

}  // namespace meshwise
