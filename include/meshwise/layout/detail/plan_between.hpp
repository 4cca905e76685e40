// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "meshwise/layout/detail/plan_cost.hpp"
#include "meshwise/layout/detail/plan_search.hpp"
#include "meshwise/layout/detail/redistributing.hpp"
#include "meshwise/layout/layout_plan.hpp"

namespace meshwise::detail {

/// Up to how many moving axes plans are exact.
inline constexpr int exact_axes = 4;

constexpr void replicate_all(LayoutValue& l, AxisBits axes) {
  for (int a = 0; a < l.axes; ++a) {
    if (has_axis(axes, a)) l.replicate(a);
  }
}
/// Makes axes partial, by the reductions that another layout has for them.
constexpr void owe_all(LayoutValue& l, AxisBits axes, const LayoutValue& as) {
  for (int a = 0; a < l.axes; ++a) {
    if (!has_axis(axes, a)) continue;
    l.replicate(a);
    l.owe(a, as.op[a]);
  }
}

/// Writes the steps of a plan.
class PlanWriter {
 public:
  constexpr PlanWriter(LayoutPlan& plan) : plan_(plan), now_(plan.from) {}

  constexpr void add(Transition what, AxisBits axes, bool dense, Share received, const LayoutValue& after) {
    PlanStep& step = plan_.steps[plan_.count++];
    step.what = what;
    step.axes = static_cast<std::uint8_t>(axes);
    step.dense = dense;
    step.cost = static_cast<double>(received) / static_cast<double>(share_after(0));
    step.after = after;
    plan_.cost += step.cost;
    now_ = after;
  }

  /// Everything up to the exchange. held: the layout then.
  constexpr void reach(const LayoutValue& held, const PlanChoice& choice) {
    owe(choice.padded);
    LayoutValue next = held;
    owe_all(next, choice.scattered | choice.reduced, plan_.from);
    if (choice.slices != 0) add(Transition::slice, choice.slices, contiguous(held, choice.slices), 0, next);
    for (int d = 0; d < held.dims; ++d) {
      AxisBits run = 0;
      for (int i = 0; i < held.split[d]; ++i) {
        const int axis = held.order[d][i];
        if (!has_axis(choice.scattered, axis)) continue;
        const SplitRule rule = held.rule[axis];
        next.replicate(axis);
        next.shard(axis, d, rule);
        run |= bit_of(axis);
        const bool last = i + 1 == held.split[d];
        if (!last && rule == SplitRule::contiguous && held.rule[held.order[d][i + 1]] == SplitRule::contiguous)
          continue;
        add(Transition::reduce_scatter, run, rule == SplitRule::contiguous,
            scatter_share(sharded_axes(next) - count_of(run), count_of(run)), next);
        run = 0;
      }
    }
    if (choice.reduced != 0) {
      add(Transition::all_reduce, choice.reduced, true, reduce_share(sharded_axes(next), count_of(choice.reduced)),
          held);
    }
  }

  constexpr void exchange(const LayoutValue& wanted) {
    const AxisBits moving = moving_axes(now_, wanted);
    if (moving == 0) return;
    const Redistributing change = name_of_change(now_, wanted);
    add(change.what, moving, change.dense, exchange_share(now_, wanted), wanted);
  }

  /// Makes sums, as in the end, of those of the axes that are none yet.
  constexpr void owe(AxisBits axes) {
    owe(Transition::keep_first, axes & axes_with(now_, PlacementKind::replicate));
    owe(Transition::pad, axes & axes_with(now_, PlacementKind::shard));
  }

 private:
  constexpr void owe(Transition what, AxisBits axes) {
    if (axes == 0) return;
    LayoutValue next = now_;
    owe_all(next, axes, plan_.to);
    add(what, axes, contiguous(now_, axes), 0, next);
  }
  static constexpr bool contiguous(const LayoutValue& l, AxisBits axes) {
    for (int a = 0; a < l.axes; ++a) {
      if (has_axis(axes, a) && l.rule[a] != SplitRule::contiguous) return false;
    }
    return true;
  }

  LayoutPlan& plan_;
  LayoutValue now_;
};

/// Searches all places, for one choice of the axes that are padded before anything else, and of those that become
/// shards for the time of the exchange though they are replicated before it and sums in the end.
constexpr void search_places(const LayoutValue& from, const LayoutValue& to, AxisBits padded, AxisBits halved,
                             PlanSearch::Result& best) {
  LayoutValue start = from, wanted = to;
  owe_all(start, padded, to);
  const AxisBits moving = moving_axes(start, to);
  const AxisBits sums = moving & axes_with(start, PlacementKind::partial);
  const AxisBits owed = moving & axes_with(to, PlacementKind::partial);
  replicate_all(wanted, owed);
  PlanChoice choice;
  choice.padded = padded;
  choice.slices = (moving & axes_with(from, PlacementKind::replicate) & axes_with(to, PlacementKind::shard)) | halved;
  choice.kept = (owed & axes_with(start, PlacementKind::shard)) | halved;
  const int leaves = count_of(moving) <= exact_axes ? 4096 : 8;
  // Sums whose axes end replicated are all alike. As many of them as cost nothing more are reduced in place.
  choice.reduced = sums & axes_with(to, PlacementKind::replicate);
  while (true) {
    LayoutValue held = start;
    replicate_all(held, choice.reduced);
    choice.scattered = sums & ~choice.reduced;
    if (choice.scattered == 0 || from.dims != 0) PlanSearch(held, wanted, choice, leaves).improve(best);
    if (choice.reduced == 0) return;
    choice.reduced &= choice.reduced - 1;
  }
}

/// Those of the axes that are at the minor ends of their dims, together with others of them.
constexpr AxisBits minor_ends(const LayoutValue& l, AxisBits axes) {
  AxisBits ends = 0;
  for (int d = 0; d < l.dims; ++d) {
    for (int i = l.split[d] - 1; i >= 0 && has_axis(axes, l.order[d][i]); --i) ends |= bit_of(l.order[d][i]);
  }
  return ends;
}

/// The plan between two layouts of one tensor on one mesh.
///
/// Cost at run time: microseconds, for more than four moving axes less than a millisecond. Allocates nothing.
constexpr LayoutPlan plan_between(const LayoutValue& from, const LayoutValue& to) {
  LayoutPlan plan;
  plan.from = from;
  plan.to = to;
  const AxisBits moving = moving_axes(from, to);
  const AxisBits owed = moving & axes_with(to, PlacementKind::partial);
  plan.possible = (owed & axes_with(from, PlacementKind::partial)) == 0;
  if (moving == 0 || !plan.possible) return plan;

  PlanSearch::Result best;
  search_places(from, to, 0, 0, best);
  if (best.received != 0 && owed != 0) {
    // An axis that is replicated and ends as a sum is cut before anything is sent, because then less is. One that is a
    // shard stays one so long, unless it is in the way of others.
    const AxisBits halved = from.dims == 0 ? 0 : owed & axes_with(from, PlacementKind::replicate);
    const AxisBits ends = minor_ends(from, owed);
    const bool exact = count_of(moving) <= exact_axes;
    for (AxisBits padded = ends;; padded = exact ? (padded - 1) & ends : 0) {
      if (minor_ends(from, padded) == padded) {
        if (padded != 0) search_places(from, to, padded, 0, best);
        if (halved != 0) search_places(from, to, padded, halved, best);
      }
      if (padded == 0) break;
    }
  }

  PlanWriter writer(plan);
  writer.reach(best.held, best.choice);
  writer.exchange(best.wanted);
  writer.owe(axes_with(to, PlacementKind::partial));
  return plan;
}

}  // namespace meshwise::detail
