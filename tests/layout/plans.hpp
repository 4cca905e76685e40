// SPDX-License-Identifier: Apache-2.0
// Layouts by the thousand, and what the cheapest way between two of them costs, found without a planner.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/layout/detail/plan_between.hpp"

namespace meshwise::plans {

using detail::AxisBits;
using detail::Share;

/// A number that orders layouts of one mesh and one tensor.
inline std::string code(const LayoutValue& l) {
  std::string text;
  for (int a = 0; a < l.axes; ++a) {
    text += l.is(a, PlacementKind::partial) ? static_cast<char>('a' + static_cast<int>(l.op[a])) : '.';
  }
  for (int d = 0; d < l.dims; ++d) {
    text += '|';
    for (int i = 0; i < l.split[d]; ++i) {
      text += static_cast<char>('0' + l.order[d][i]);
      text += static_cast<char>('0' + static_cast<int>(l.rule[l.order[d][i]]));
    }
  }
  return text;
}

inline LayoutValue replicated(int axes, int dims) {
  LayoutValue l;
  l.axes = axes;
  l.dims = dims;
  return l;
}

/// l with an axis that is replicated in it put in place `at` of a dim.
inline LayoutValue inserted(const LayoutValue& l, int axis, int d, int at, SplitRule rule = SplitRule::contiguous) {
  LayoutValue result = l;
  std::vector<std::pair<int, SplitRule>> minor;
  for (int i = at; i < l.split[d]; ++i) minor.emplace_back(l.order[d][i], l.rule[l.order[d][i]]);
  for (const auto& entry : minor) result.replicate(entry.first);
  result.shard(axis, d, rule);
  for (const auto& entry : minor) result.shard(entry.first, d, entry.second);
  return result;
}

/// All layouts in which the axes from `first` on are placed in any way, behind what `base` says of the others.
inline std::vector<LayoutValue> all_layouts(const LayoutValue& base, int first, bool partial = true,
                                            const std::vector<SplitRule>& rules = {SplitRule::contiguous}) {
  std::vector<LayoutValue> all{base};
  for (int axis = first; axis < base.axes; ++axis) {
    std::vector<LayoutValue> next;
    for (const LayoutValue& l : all) {
      next.push_back(l);
      if (partial) {
        LayoutValue owed = l;
        owed.owe(axis, ReductionKind::sum);
        next.push_back(owed);
      }
      for (int d = 0; d < l.dims; ++d) {
        for (int at = base.split[d]; at <= l.split[d]; ++at) {
          for (const SplitRule rule : rules) next.push_back(inserted(l, axis, d, at, rule));
        }
      }
    }
    all = std::move(next);
  }
  return all;
}

/// Dice that roll the same everywhere.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  int roll(int faces) {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<int>((state_ >> 33) % static_cast<std::uint64_t>(faces));
  }

 private:
  std::uint64_t state_;
};

inline LayoutValue random_layout(Dice& dice, int axes, int dims, bool rules = false) {
  LayoutValue l = replicated(axes, dims);
  for (int axis = 0; axis < axes; ++axis) {
    const int kind = dice.roll(5);
    if (kind == 0) continue;
    if (kind == 1 || dims == 0) {
      l.owe(axis, ReductionKind::sum);
    } else {
      const int d = dice.roll(dims);
      const auto rule = static_cast<SplitRule>(rules && dice.roll(2) == 0 ? dice.roll(4) : 0);
      l = inserted(l, axis, d, dice.roll(l.split[d] + 1), rule);
    }
  }
  return l;
}

/// What one move of one kind makes of a layout, and costs.
template <class Take>
void each_move(const LayoutValue& l, AxisBits movable, const Take& take) {
  const int held = detail::sharded_axes(l);
  const auto mine = [&](int axis) { return detail::has_axis(movable, axis); };
  for (int a = 0; a < l.axes; ++a) {
    if (!mine(a)) continue;
    LayoutValue without = l;
    without.replicate(a);
    const bool minor = l.is(a, PlacementKind::shard) && l.order[l.dim[a]][l.split[l.dim[a]] - 1] == a;
    if (l.is(a, PlacementKind::shard) && !minor) continue;
    for (int d = 0; d < l.dims; ++d) {
      LayoutValue cut = without;
      cut.shard(a, d);
      if (l.is(a, PlacementKind::replicate)) take(cut, Share{0});                         // slice
      if (l.is(a, PlacementKind::partial)) take(cut, 3 * detail::share_after(held) / 4);  // reduce_scatter
      if (minor) take(cut, 3 * detail::share_after(held) / 4);                            // all_to_all
    }
    if (minor) take(without, 3 * detail::share_after(held));  // all_gather
    if (!l.is(a, PlacementKind::partial)) {                   // keep_first, pad
      LayoutValue owed = without;
      owed.owe(a, ReductionKind::sum);
      take(owed, Share{0});
    }
  }
  const AxisBits sums = movable & detail::axes_with(l, PlacementKind::partial);
  for (AxisBits some = sums; some != 0; some = (some - 1) & sums) {  // all_reduce
    LayoutValue reduced = l;
    for (int a = 0; a < l.axes; ++a) {
      if (detail::has_axis(some, a)) reduced.replicate(a);
    }
    take(reduced, 2 * (detail::share_after(held) - detail::share_after(held + detail::count_of(some))));
  }
}

/// The least cost from one layout to each of `all`, which must be all that can be reached: by moves of one axis,
/// all_reduces of several, and exchanges of any shards.
inline std::map<std::string, Share> cheapest(const LayoutValue& from, const std::vector<LayoutValue>& all,
                                             AxisBits movable) {
  std::map<std::string, int> number;
  for (std::size_t i = 0; i < all.size(); ++i) number.emplace(code(all[i]), static_cast<int>(i));
  const Share never = detail::share_after(0) * 1000;
  std::vector<Share> cost(all.size(), never);
  std::vector<bool> done(all.size(), false);
  using Item = std::pair<Share, int>;
  std::priority_queue<Item, std::vector<Item>, std::greater<>> queue;
  cost[static_cast<std::size_t>(number.at(code(from)))] = 0;
  queue.emplace(0, number.at(code(from)));
  while (!queue.empty()) {
    const int i = queue.top().second;
    const auto at = static_cast<std::size_t>(i);
    queue.pop();
    if (done[at]) continue;
    done[at] = true;
    const auto reach = [&](int j, Share more) {
      const auto to = static_cast<std::size_t>(j);
      if (cost[at] + more >= cost[to]) return;
      cost[to] = cost[at] + more;
      queue.emplace(cost[to], j);
    };
    each_move(all[at], movable, [&](const LayoutValue& next, Share more) { reach(number.at(code(next)), more); });
    const AxisBits sums = detail::axes_with(all[at], PlacementKind::partial);
    for (std::size_t j = 0; j < all.size(); ++j) {
      if (done[j] || detail::axes_with(all[j], PlacementKind::partial) != sums) continue;
      reach(static_cast<int>(j), detail::exchange_share(all[at], all[j]));
    }
  }
  std::map<std::string, Share> result;
  for (std::size_t i = 0; i < all.size(); ++i) result.emplace(code(all[i]), cost[i]);
  return result;
}

inline Share share(double cost) { return static_cast<Share>(cost * static_cast<double>(detail::share_after(0))); }

/// What is wrong with a plan, or nothing: each step does what its name says to the axes that it names, at the cost that
/// the table says, and the last one leads to the end.
inline std::string fault(const LayoutPlan& plan) {
  using detail::has_axis;
  const auto order = [](const LayoutPlan& p, Transition what) {
    int n = 0;
    for (const PlanStep& step : p) n += step.what == what ? 1 : 0;
    return n;
  };
  for (const Transition once : {Transition::all_reduce, Transition::slice, Transition::keep_first}) {
    if (order(plan, once) > 1) return std::string("more than one ") + transition_name(once);
  }
  if (order(plan, Transition::exchange) + order(plan, Transition::all_gather) + order(plan, Transition::all_to_all) >
      1) {
    return "more than one exchange";
  }
  double sum = 0;
  for (int i = 0; i < plan.count; ++i) {
    const PlanStep& step = plan.steps[i];
    const LayoutValue &a = plan.before(i), &b = step.after;
    const std::string here = std::string(transition_name(step.what)) + " ";
    sum += step.cost;
    if (step.axes == 0) return here + "of no axis";
    if ((step.axes & ~detail::moving_axes(plan.from, plan.to)) != 0) return here + "of an axis that stays";
    if (detail::moving_axes(a, b) != step.axes) return here + "of other axes than those that move";
    const int held = detail::sharded_axes(a), n = detail::count_of(step.axes);
    PlacementKind from = PlacementKind::shard, to = PlacementKind::shard;
    Share cost = 0;
    switch (step.what) {
      case Transition::slice: from = PlacementKind::replicate; break;
      case Transition::reduce_scatter:
        from = PlacementKind::partial;
        cost = detail::share_after(held) - detail::share_after(held + n);
        break;
      case Transition::all_reduce:
        from = PlacementKind::partial;
        to = PlacementKind::replicate;
        cost = 2 * (detail::share_after(held) - detail::share_after(held + n));
        break;
      case Transition::all_gather:
        to = PlacementKind::replicate;
        cost = detail::share_after(held - n) - detail::share_after(held);
        break;
      case Transition::keep_first:
        from = PlacementKind::replicate;
        to = PlacementKind::partial;
        break;
      case Transition::pad: to = PlacementKind::partial; break;
      case Transition::all_to_all: cost = detail::share_after(held) - detail::share_after(held + n); break;
      case Transition::exchange: cost = detail::exchange_share(a, b); break;
      case Transition::equal: return "a step that does nothing";
    }
    if (share(step.cost) != cost) return here + "at another cost";
    if (step.what != Transition::exchange) {
      for (int axis = 0; axis < a.axes; ++axis) {
        if (has_axis(step.axes, axis) && (a.kind[axis] != from || b.kind[axis] != to))
          return here + "of other placements";
      }
      if (n > 1 && !step.dense && (communicates(step.what))) return here + "of several axes that are not contiguous";
    } else {
      for (int axis = 0; axis < a.axes; ++axis) {
        const bool owed = a.is(axis, PlacementKind::partial) || b.is(axis, PlacementKind::partial);
        if (has_axis(step.axes, axis) && owed) return here + "of a sum";
      }
    }
    // What leaves, leaves the minor ends; what joins, joins there; nothing else changes its place.
    if (step.what != Transition::exchange) {
      int left = 0, joined = 0;
      for (int d = 0; d < a.dims; ++d) {
        const int same = detail::common_prefix(a, b, d);
        if (same < a.split[d] && same < b.split[d]) return here + "that changes a dim in the middle";
        left += same < a.split[d] ? 1 : 0;
        joined += same < b.split[d] ? 1 : 0;
      }
      if (step.what == Transition::reduce_scatter && joined != 1) return here + "onto several dims";
      if (step.what == Transition::all_gather && left != 1) return here + "of several dims";
      if (step.what == Transition::all_to_all && (left != 1 || joined != 1)) return here + "of more than two dims";
    }
    bool dense = true;
    for (int axis = 0; axis < a.axes; ++axis) {
      if (!has_axis(step.axes, axis)) continue;
      dense = dense && a.rule[axis] == SplitRule::contiguous && b.rule[axis] == SplitRule::contiguous;
    }
    if (dense != step.dense) return here + "that is wrong about being dense";
  }
  if (sum != plan.cost) return "a sum of costs that is wrong";
  if (!(plan.before(plan.count) == plan.to)) return "a wrong end";
  return "";
}

}  // namespace meshwise::plans
