// SPDX-License-Identifier: Apache-2.0
#include "meshwise/layout/plan.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "meshwise/layout/layout_plan.hpp"
#include "plans.hpp"

namespace {

using namespace meshwise;
using namespace meshwise::plans;

using Grid = Mesh<dp, cp, tp>;
template <class... Ps>
using On = Layout<Grid, Ps...>;
using All = Dims<batch, seq, hidden>;

/// Whether a plan is these steps.
template <class... Steps>
constexpr bool goes(const LayoutPlan& p, double cost, Steps... steps) {
  const Transition wanted[] = {steps..., Transition::equal};
  if (!p.possible || p.cost != cost || p.count != static_cast<int>(sizeof...(Steps))) return false;
  for (int i = 0; i < p.count; ++i) {
    if (p.steps[i].what != wanted[i]) return false;
  }
  return p.before(p.count) == p.to;
}

// The table, one axis.
constexpr auto all_reduce = Transition::all_reduce, reduce_scatter = Transition::reduce_scatter,
               all_gather = Transition::all_gather, all_to_all = Transition::all_to_all,
               exchange = Transition::exchange, slice = Transition::slice, keep_first = Transition::keep_first,
               pad = Transition::pad;
static_assert(goes(plan<On<Partial<tp>>, On<>>, 1.5, all_reduce));
static_assert(goes(plan<On<Partial<tp, Max>>, On<>>, 1.5, all_reduce));
static_assert(goes(plan<On<Partial<tp>>, On<Shard<seq, tp>>>, .75, reduce_scatter));
static_assert(goes(plan<On<Shard<seq, tp>>, On<>>, .75, all_gather));
static_assert(goes(plan<On<Shard<seq, tp>>, On<Shard<batch, tp>>>, .1875, all_to_all));
static_assert(goes(plan<On<>, On<Shard<seq, tp>>>, 0, slice));
static_assert(goes(plan<On<>, On<Partial<tp>>>, 0, keep_first));
static_assert(goes(plan<On<Shard<seq, tp>>, On<Partial<tp>>>, 0, pad));
static_assert(goes(plan<On<Shard<seq, tp>>, On<Shard<seq, tp>>>, 0) && goes(plan<On<>, On<>>, 0));
static_assert(goes(plan<On<Shard<seq, Zigzag<tp>>>, On<Shard<seq, tp>>>, .1875, exchange));
static_assert(goes(plan<On<Shard<seq, Zigzag<tp>>>, On<Shard<seq, Striped<tp>>>>, .1875, exchange));
static_assert(goes(plan<On<Shard<seq, Zigzag<tp>>>, On<>>, .75, all_gather));
static_assert(goes(plan<On<Partial<tp>>, On<Shard<seq, Zigzag<tp>>>>, .75, reduce_scatter));
static_assert(goes(plan<On<>, On<Shard<seq, Counted<tp>>>>, 0, slice));
static_assert(goes(plan<On<Shard<seq, Zigzag<tp>>>, On<Shard<batch, tp>>>, .1875, all_to_all));
// Other axes make pieces smaller, and are not asked.
static_assert(goes(plan<On<Partial<tp>, Shard<batch, dp>, Shard<seq, cp>>, On<Shard<batch, dp>, Shard<seq, cp>>>,
                   1.5 / 16, all_reduce));
static_assert(plan<On<Partial<tp>, Shard<batch, dp>>, On<Shard<batch, dp>>>.steps[0].axes == 4);

// Several axes at once, costs as in the tables of the literature or below: one exchange does what chains do there.
static_assert(goes(plan<On<Shard<batch, dp, tp>>, On<Shard<batch, tp, dp>>>, 3. / 64, exchange));
static_assert(goes(plan<On<Partial<dp>>, On<Shard<batch, tp>>>, .375, slice, all_reduce));
static_assert(goes(plan<On<Partial<dp>, Shard<batch, tp>>, On<>>, 1.125, all_reduce, all_gather));
static_assert(goes(plan<On<Partial<dp>, Shard<batch, tp>>, On<Shard<batch, dp, tp>>>, .1875 + 3. / 64, reduce_scatter,
                   exchange));
static_assert(goes(plan<On<Partial<dp>, Shard<batch, tp>>, On<Shard<batch, tp, dp>>>, .1875, reduce_scatter));
static_assert(goes(plan<On<Partial<dp>, Partial<tp>>, On<Shard<batch, dp, tp>>>, 15. / 16, reduce_scatter));
static_assert(goes(plan<On<Partial<dp>, Partial<tp>>, On<>>, 1.875, all_reduce));
static_assert(goes(plan<On<Shard<batch, dp, tp>>, On<Shard<batch, tp>>>, 15. / 64, exchange));
static_assert(goes(plan<On<Shard<batch, dp, tp>>, On<Shard<seq, dp, tp>>>, 15. / 256, all_to_all));
static_assert(goes(plan<On<Shard<batch, dp>, Shard<seq, tp>>, On<Shard<batch, tp>, Shard<seq, dp>>>, 3. / 64,
                   exchange));
static_assert(goes(plan<On<Shard<batch, dp, tp>>, On<>>, 15. / 16, all_gather));
static_assert(goes(plan<On<Shard<batch, dp>, Shard<seq, tp>>, On<>>, 15. / 16, exchange));
// A sum that ends replicated is scattered if moving parts of it is cheaper.
static_assert(goes(plan<On<Partial<dp>, Shard<batch, tp>>, On<Shard<seq, tp>>>, .1875 + 15. / 64, reduce_scatter,
                   exchange));
// Cut before the sum: parts are reduced, and what is outside of them is filled in at the end.
static_assert(goes(plan<On<Partial<dp>>, On<Partial<tp>>, All>, .375, slice, all_reduce, pad));
static_assert(goes(plan<On<>, On<Partial<dp>, Partial<tp>>, All>, 0, keep_first));
static_assert(goes(plan<On<Shard<batch, dp, tp>>, On<Partial<dp>, Partial<tp>>>, 0, pad));
// Without a dim nothing can be cut.
static_assert(goes(plan<On<Partial<dp>>, On<Partial<tp>>>, 1.5, all_reduce, keep_first));
static_assert(goes(plan<On<Partial<dp>, Partial<tp>>, On<Partial<tp>>>, 1.5, all_reduce));

// A Partial does not change its reduction.
static_assert(!plan<On<Partial<tp>>, On<Partial<tp, Max>>>.possible);
static_assert(plan<On<Partial<tp>>, On<Partial<cp, Max>>>.possible);
// Counts are said at run time: that they change is no step.
static_assert(goes(plan<On<Shard<batch, Counted<dp>, tp>>, On<Shard<batch, Counted<dp>, tp>>>, 0));
static_assert(goes(plan<On<Shard<batch, Counted<dp>>>, On<Shard<batch, Counted<tp>>>>, 3. / 16, exchange));

static_assert(plan<On<Partial<tp>>, On<>>.communicates() && !plan<On<>, On<Shard<seq, tp>>>.communicates());
static_assert(plan<On<Partial<tp>>, On<>>.is(all_reduce) && !plan<On<Partial<tp>>, On<>>.is(all_gather));

TEST_CASE("plans between all layouts of two axes and two dims are sound and as cheap as any way") {
  const std::vector<LayoutValue> all = all_layouts(replicated(2, 2), 0);
  REQUIRE(all.size() == 4 + 2 * 4 + 6);
  for (const LayoutValue& from : all) {
    for (const LayoutValue& to : all) {
      const LayoutPlan p = detail::plan_between(from, to);
      INFO(code(from) << " to " << code(to));
      CHECK(fault(p) == "");
      const AxisBits moving = detail::moving_axes(from, to);
      CHECK(share(p.cost) <= cheapest(from, all, 3).at(code(to)) + (moving == 3 ? 0 : detail::share_after(0) * 2));
      if (moving == 3) CHECK(share(p.cost) == cheapest(from, all, 3).at(code(to)));
    }
  }
}

TEST_CASE("costs obey the triangle inequality among the layouts that differ on the moving axes") {
  const std::vector<LayoutValue> all =
      all_layouts(replicated(2, 2), 0, true, {SplitRule::contiguous, SplitRule::zigzag});
  std::vector<std::vector<Share>> cost;
  for (const LayoutValue& from : all) {
    cost.emplace_back();
    for (const LayoutValue& to : all) {
      const LayoutPlan p = detail::plan_between(from, to);
      if (fault(p) != "") FAIL(code(from) << " to " << code(to) << ": " << fault(p));
      cost.back().push_back(share(p.cost));
    }
  }
  int triangles = 0;
  for (std::size_t f = 0; f < all.size(); ++f) {
    for (std::size_t t = 0; t < all.size(); ++t) {
      const AxisBits moving = detail::moving_axes(all[f], all[t]);
      for (std::size_t m = 0; m < all.size(); ++m) {
        const AxisBits others = detail::moving_axes(all[f], all[m]) | detail::moving_axes(all[m], all[t]);
        if ((others & ~moving) != 0) continue;
        ++triangles;
        if (cost[f][t] > cost[f][m] + cost[m][t]) {
          FAIL_CHECK(code(all[f]) << " to " << code(all[t]) << " costs " << cost[f][t] << ", by " << code(all[m]) << " "
                                  << cost[f][m] << " + " << cost[m][t]);
        }
      }
    }
  }
  CHECK(triangles > 1000);
}

/// Random pairs between which all movable axes move.
void compare_with_any_way(const LayoutValue& base, int first, int sources, int ends, std::uint64_t seed) {
  Dice dice(seed);
  const std::vector<LayoutValue> all = all_layouts(base, first);
  AxisBits movable = 0;
  for (int a = first; a < base.axes; ++a) movable |= detail::bit_of(a);
  int compared = 0;
  for (int i = 0; i < sources; ++i) {
    const LayoutValue& from = all[static_cast<std::size_t>(dice.roll(static_cast<int>(all.size())))];
    const auto least = cheapest(from, all, movable);
    for (int j = 0; j < ends; ++j) {
      const LayoutValue& to = all[static_cast<std::size_t>(dice.roll(static_cast<int>(all.size())))];
      const LayoutPlan p = detail::plan_between(from, to);
      INFO(code(from) << " to " << code(to));
      CHECK(fault(p) == "");
      if (detail::moving_axes(from, to) != movable) continue;
      ++compared;
      CHECK(share(p.cost) == least.at(code(to)));
    }
  }
  CHECK(compared > sources);
}

TEST_CASE("three moving axes: no way is cheaper than the plan") {
  compare_with_any_way(replicated(3, 2), 0, 20, 100, 1);
  compare_with_any_way(replicated(3, 3), 0, 10, 100, 2);
  compare_with_any_way(inserted(replicated(4, 2), 0, 1, 0), 1, 10, 100, 3);  // behind an axis that stays
}

TEST_CASE("four moving axes: no way is cheaper than the plan") {
  compare_with_any_way(replicated(4, 1), 0, 10, 200, 4);
  compare_with_any_way(replicated(4, 2), 0, 6, 200, 5);
}

TEST_CASE("whatever the split rules, no way is cheaper than the plan") {
  const std::vector<SplitRule> rules{SplitRule::contiguous, SplitRule::zigzag};
  for (const std::vector<LayoutValue>& all :
       {all_layouts(replicated(2, 2), 0, true, rules), all_layouts(replicated(3, 1), 0, true, rules)}) {
    Dice dice(9);
    const int axes = all[0].axes;
    const AxisBits movable = (1U << axes) - 1;
    for (int i = 0; i < 12; ++i) {
      const LayoutValue& from = all[static_cast<std::size_t>(dice.roll(static_cast<int>(all.size())))];
      const auto least = cheapest(from, all, movable);
      for (const LayoutValue& to : all) {
        if (detail::moving_axes(from, to) != movable) continue;
        const LayoutPlan p = detail::plan_between(from, to);
        INFO(code(from) << " to " << code(to));
        CHECK(fault(p) == "");
        CHECK(share(p.cost) <= least.at(code(to)));
      }
    }
  }
}

/// One axis after the other: what is in the way leaves, minor axes first, then everything joins, major axes first.
Share one_by_one(const LayoutValue& from, const LayoutValue& to) {
  LayoutValue now = from;
  Share cost = 0;
  const auto gather = [&](int axis) {
    const LayoutValue before = now;
    now.replicate(axis);
    cost += share(detail::plan_between(before, now).cost);
  };
  const AxisBits moving = detail::moving_axes(from, to);
  for (int d = 0; d < from.dims; ++d) {
    for (int i = from.split[d] - 1; i >= 0; --i) {
      if (detail::has_axis(moving, from.order[d][i])) gather(from.order[d][i]);
    }
  }
  for (int a = 0; a < from.axes; ++a) {
    if (detail::has_axis(moving, a) && to.is(a, PlacementKind::replicate) && now.is(a, PlacementKind::partial))
      gather(a);
  }
  for (int d = 0; d < to.dims; ++d) {
    for (int i = 0; i < to.split[d]; ++i) {
      const int axis = to.order[d][i];
      if (!detail::has_axis(moving, axis)) continue;
      const LayoutValue before = now;
      now.replicate(axis);
      now.shard(axis, d, to.rule[axis]);
      cost += share(detail::plan_between(before, now).cost);
    }
  }
  return cost;
}

TEST_CASE("more than four moving axes: sound, and never worse than one axis after the other") {
  Dice dice(6);
  for (int axes = 5; axes <= LayoutValue::most_axes; ++axes) {
    for (int i = 0; i < 300; ++i) {
      const LayoutValue from = random_layout(dice, axes, 1 + dice.roll(4), i % 3 == 0);
      LayoutValue to = random_layout(dice, axes, from.dims, i % 3 == 0);
      const LayoutPlan p = detail::plan_between(from, to);
      INFO(code(from) << " to " << code(to));
      CHECK(fault(p) == "");
      CHECK(share(p.cost) <= one_by_one(from, to));
    }
  }
}

TEST_CASE("no dims, no axes: scalars") {
  Dice dice(7);
  for (int axes = 0; axes <= 4; ++axes) {
    for (const LayoutValue& from : all_layouts(replicated(axes, 0), 0)) {
      for (const LayoutValue& to : all_layouts(replicated(axes, 0), 0)) {
        CHECK(fault(detail::plan_between(from, to)) == "");
      }
    }
  }
}

TEST_CASE("a plan is the same whenever it is made, and a layout's plan to itself is nothing") {
  Dice dice(8);
  for (int i = 0; i < 100; ++i) {
    const LayoutValue l = random_layout(dice, 1 + dice.roll(8), 1 + dice.roll(5), true);
    CHECK(detail::plan_between(l, l).count == 0);
    CHECK(detail::plan_between(l, l).cost == 0);
  }
}

}  // namespace
