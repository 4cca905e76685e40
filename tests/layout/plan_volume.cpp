// SPDX-License-Identifier: Apache-2.0
#include "meshwise/layout/plan_volume.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <vector>

#include "meshwise/layout/layout_value.hpp"
#include "meshwise/layout/plan.hpp"
#include "plans.hpp"

namespace {

using namespace meshwise;
using namespace meshwise::plans;

/// The rules once more, one index at a time: which of `all` a rank with part k of n holds.
std::vector<std::size_t> part_of(const std::vector<std::size_t>& all, SplitRule rule, std::size_t n, std::size_t k,
                                 const std::vector<std::size_t>& counts) {
  const std::size_t m = all.size();
  std::vector<std::size_t> part;
  for (std::size_t i = 0; i < m; ++i) {
    bool mine = false;
    if (rule == SplitRule::contiguous) mine = i >= k * m / n && i < (k + 1) * m / n;
    if (rule == SplitRule::chunked) mine = i / std::max<std::size_t>((m + n - 1) / n, 1) == k;
    if (rule == SplitRule::zigzag) {
      std::size_t chunk = 0;
      while (i >= (chunk + 1) * m / (2 * n)) ++chunk;
      mine = chunk == k || chunk == 2 * n - 1 - k;
    }
    if (rule == SplitRule::striped) mine = i % n == k;
    if (rule == SplitRule::counted) {
      const auto begin =
          std::accumulate(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(k), std::size_t{0});
      mine = i >= begin && i < begin + counts[k];
    }
    if (mine) part.push_back(all[i]);
  }
  return part;
}

struct Case {
  std::vector<int> sizes;
  std::vector<std::size_t> extents;
  std::vector<std::vector<std::size_t>> counts_from, counts_to;  ///< by dim
};

std::vector<std::size_t> held(const LayoutValue& l, int d, const Case& c, const std::vector<int>& at,
                              const std::vector<std::size_t>& counts) {
  std::vector<std::size_t> all(c.extents[static_cast<std::size_t>(d)]);
  std::iota(all.begin(), all.end(), std::size_t{0});
  for (int i = 0; i < l.split[d];) {
    const SplitRule rule = l.rule[l.order[d][i]];
    std::size_t n = 1, k = 0;
    for (; i < l.split[d] && l.rule[l.order[d][i]] == rule; ++i) {
      const auto axis = static_cast<std::size_t>(l.order[d][i]);
      n *= static_cast<std::size_t>(c.sizes[axis]);
      k = k * static_cast<std::size_t>(c.sizes[axis]) + static_cast<std::size_t>(at[axis]);
      if (rule != SplitRule::contiguous) {
        ++i;
        break;
      }
    }
    all = part_of(all, rule, n, k, counts);
  }
  return all;
}

template <class Visit>
void each_rank(const std::vector<int>& sizes, const Visit& visit) {
  std::vector<int> at(sizes.size(), 0);
  while (true) {
    visit(at);
    std::size_t a = sizes.size();
    while (a > 0 && ++at[a - 1] == sizes[a - 1]) at[--a] = 0;
    if (a == 0) return;
  }
}

/// The elements of a tensor that a rank holds, by their numbers.
std::set<std::size_t> elements(const LayoutValue& l, const Case& c, const std::vector<int>& at,
                               const std::vector<std::vector<std::size_t>>& counts) {
  std::set<std::size_t> result{0};
  for (int d = 0; d < l.dims; ++d) {
    std::set<std::size_t> next;
    for (const std::size_t i : held(l, d, c, at, counts[static_cast<std::size_t>(d)])) {
      for (const std::size_t before : result) next.insert(before * c.extents[static_cast<std::size_t>(d)] + i);
    }
    result = std::move(next);
  }
  return result;
}

/// What all ranks receive in a plan, element by element.
std::uint64_t counted_volume(const LayoutPlan& plan, const Case& c) {
  std::uint64_t all = 0;
  // Of each dim the axis that counts it, or -1.
  const auto counting = [](const LayoutValue& l, int d) {
    const bool counted = l.split[d] > 0 && l.rule[l.order[d][0]] == SplitRule::counted;
    return counted ? static_cast<int>(l.order[d][0]) : -1;
  };
  // The first counts are those of the axis that counted in the beginning, the others those of the end.
  const auto counts = [&](const LayoutValue& l) {
    std::vector<std::vector<std::size_t>> result(c.extents.size());
    for (std::size_t d = 0; d < c.extents.size(); ++d) {
      const int axis = counting(l, static_cast<int>(d));
      if (axis >= 0) result[d] = axis == counting(plan.from, static_cast<int>(d)) ? c.counts_from[d] : c.counts_to[d];
    }
    return result;
  };
  for (int i = 0; i < plan.count; ++i) {
    const PlanStep& step = plan.steps[i];
    const bool moves =
        step.what == Transition::exchange || step.what == Transition::all_gather || step.what == Transition::all_to_all;
    std::uint64_t group = 1;
    for (std::size_t a = 0; a < c.sizes.size(); ++a) {
      if (detail::has_axis(step.axes, static_cast<int>(a))) group *= static_cast<std::uint64_t>(c.sizes[a]);
    }
    each_rank(c.sizes, [&](const std::vector<int>& at) {
      const auto before = elements(plan.before(i), c, at, counts(plan.before(i)));
      const auto after = elements(step.after, c, at, counts(step.after));
      // Each rank of a group receives an equal share of the traffic of a sum on average.
      if (step.what == Transition::all_reduce) all += 2 * (group - 1) * before.size() * 216 / group;
      if (step.what == Transition::reduce_scatter) all += (group - 1) * before.size() * 216 / group;
      for (const std::size_t element : after) all += moves && before.count(element) == 0 ? 216u : 0u;
    });
  }
  each_rank(c.sizes, [&](const std::vector<int>& at) {
    const auto before = elements(plan.to, c, at, counts(plan.to));
    for (const std::size_t element : elements(plan.to, c, at, c.counts_to))
      all += before.count(element) == 0 ? 216u : 0u;
  });
  return all / 216;
}

std::uint64_t volume(const LayoutPlan& plan, const Case& c, std::size_t element) {
  std::vector<DimCounts> counts;
  for (std::size_t d = 0; d < c.extents.size(); ++d) counts.push_back({c.counts_from[d], c.counts_to[d]});
  return plan_volume(plan, c.sizes, c.extents, element, counts);
}

Case plain(std::vector<int> sizes, std::vector<std::size_t> extents) {
  const std::size_t dims = extents.size();
  return {std::move(sizes), std::move(extents), std::vector<std::vector<std::size_t>>(dims),
          std::vector<std::vector<std::size_t>>(dims)};
}

TEST_CASE("positions are those of the rules, one index at a time") {
  Dice dice(1);
  for (int i = 0; i < 2000; ++i) {
    const int axes = 1 + dice.roll(4);
    LayoutValue l = replicated(axes, 1);
    std::vector<int> sizes;
    for (int a = 0; a < axes; ++a) {
      sizes.push_back(1 + dice.roll(4));
      l = inserted(l, a, 0, dice.roll(l.split[0] + 1), static_cast<SplitRule>(dice.roll(4)));
    }
    const Case c = plain(sizes, {static_cast<std::size_t>(dice.roll(40))});
    each_rank(sizes, [&](const std::vector<int>& at) {
      const Positions found = held_positions(l, 0, c.extents[0], sizes, at);
      const std::vector<std::size_t> wanted = held(l, 0, c, at, {});
      REQUIRE(found.size() == wanted.size());
      for (std::size_t k = 0; k < wanted.size(); ++k) CHECK(found.at(k) == wanted[k]);
    });
  }
}

TEST_CASE("every rule gives each index to exactly one part") {
  Dice dice(2);
  for (int i = 0; i < 300; ++i) {
    LayoutValue l = replicated(3, 1);
    for (int a = 0; a < 3; ++a) l = inserted(l, a, 0, dice.roll(l.split[0] + 1), static_cast<SplitRule>(dice.roll(4)));
    const std::vector<int> sizes{1 + dice.roll(3), 1 + dice.roll(3), 1 + dice.roll(3)};
    const auto extent = static_cast<std::size_t>(dice.roll(30));
    std::vector<int> owners(extent, 0);
    each_rank(sizes, [&](const std::vector<int>& at) {
      const Positions found = held_positions(l, 0, extent, sizes, at);
      for (std::size_t k = 0; k < found.size(); ++k) ++owners[found.at(k)];
    });
    for (const int n : owners) CHECK(n == 1);
  }
}

TEST_CASE("volumes are what counting element by element gives, whatever the rules, uneven and empty parts included") {
  Dice dice(3);
  for (int i = 0; i < 400; ++i) {
    const int axes = 1 + dice.roll(3), dims = 1 + dice.roll(2);
    std::vector<int> sizes;
    for (int a = 0; a < axes; ++a) sizes.push_back(1 + dice.roll(3));
    std::vector<std::size_t> extents;
    for (int d = 0; d < dims; ++d) extents.push_back(static_cast<std::size_t>(dice.roll(8)));
    const Case c = plain(sizes, extents);
    const LayoutValue from = random_layout(dice, axes, dims, true), to = random_layout(dice, axes, dims, true);
    const LayoutPlan p = detail::plan_between(from, to);
    INFO(code(from) << " to " << code(to));
    CHECK(fault(p) == "");
    CHECK(volume(p, c, 1) == counted_volume(p, c));
    CHECK(volume(p, c, 4) == 4 * volume(p, c, 1));
  }
}

// The axes of a step are the group that it concerns: nobody else is needed, whatever is uneven or empty.
TEST_CASE("what a step needs is held by the ranks that differ in its axes only") {
  Dice dice(5);
  for (int i = 0; i < 200; ++i) {
    const int axes = 1 + dice.roll(3), dims = 1 + dice.roll(2);
    std::vector<int> sizes;
    for (int a = 0; a < axes; ++a) sizes.push_back(1 + dice.roll(3));
    std::vector<std::size_t> extents;
    for (int d = 0; d < dims; ++d) extents.push_back(static_cast<std::size_t>(dice.roll(9)));
    const Case c = plain(sizes, extents);
    const LayoutPlan p =
        detail::plan_between(random_layout(dice, axes, dims, true), random_layout(dice, axes, dims, true));
    for (int s = 0; s < p.count; ++s) {
      const PlanStep& step = p.steps[s];
      INFO(code(p.from) << " to " << code(p.to) << ", step " << s);
      each_rank(sizes, [&](const std::vector<int>& at) {
        std::set<std::size_t> before = elements(p.before(s), c, at, c.counts_from);
        const std::set<std::size_t> after = elements(step.after, c, at, c.counts_from);
        if (communicates(step.what)) {
          each_rank(sizes, [&](const std::vector<int>& other) {
            bool near_by = true;
            for (std::size_t a = 0; a < sizes.size(); ++a) {
              near_by = near_by && (at[a] == other[a] || detail::has_axis(step.axes, static_cast<int>(a)));
            }
            if (near_by) before.merge(elements(p.before(s), c, other, c.counts_from));
          });
        }
        const std::set<std::size_t>&less = step.what == Transition::pad ? before : after,
              &more = step.what == Transition::pad ? after : before;
        CHECK(std::includes(more.begin(), more.end(), less.begin(), less.end()));
      });
    }
  }
}

TEST_CASE("counted dims: gathered, cut by counts, by those of another axis, and counted anew") {
  const LayoutValue whole = replicated(2, 2);
  const LayoutValue counted = inserted(whole, 0, 0, 0, SplitRule::counted);
  const LayoutValue both = inserted(counted, 1, 0, 1), beside = inserted(counted, 1, 1, 0);
  const LayoutValue zigzag = inserted(counted, 1, 1, 0, SplitRule::zigzag), other = inserted(whole, 1, 1, 0);
  const LayoutValue by_other = inserted(whole, 1, 0, 0, SplitRule::counted);
  const LayoutValue two = inserted(counted, 1, 1, 0, SplitRule::counted);
  const LayoutValue owed = [&] {
    LayoutValue l = counted;
    l.owe(1, ReductionKind::sum);
    return l;
  }();
  // Counts of dim d of 9 x 4, by the axis that counts it, of 3 x 2; in two ways.
  const std::vector<std::size_t> in_ways[2][2][2] = {{{{0, 7, 2}, {2, 2, 0}}, {{4, 5}, {1, 3}}},
                                                     {{{4, 4, 1}, {0, 0, 4}}, {{9, 0}, {2, 2}}}};
  const auto counts = [&](const LayoutValue& l, int way) {
    std::vector<std::vector<std::size_t>> result(2);
    for (int d = 0; d < 2; ++d) {
      if (!detail::is_counted(l, d)) continue;
      result[static_cast<std::size_t>(d)] = in_ways[way][l.order[d][0]][d];
    }
    return result;
  };
  int recounted = 0;
  for (const auto* from : {&whole, &counted, &both, &beside, &zigzag, &other, &by_other, &two, &owed}) {
    for (const auto* to : {&whole, &counted, &both, &beside, &zigzag, &other, &by_other, &two}) {
      for (const int way : {0, 1}) {
        Case c = plain({3, 2}, {9, 4});
        c.counts_from = counts(*from, 0);
        c.counts_to = counts(*to, way);
        const LayoutPlan p = detail::plan_between(*from, *to);
        INFO(code(*from) << " to " << code(*to));
        CHECK(volume(p, c, 8) == 8 * counted_volume(p, c));
        std::vector<DimCounts> spans;
        for (std::size_t d = 0; d < 2; ++d) spans.push_back({c.counts_from[d], c.counts_to[d]});
        const std::uint64_t anew = recount_volume(p, c.sizes, c.extents, 8, spans);
        CHECK((anew == 0 || way == 1));
        recounted += anew == 0 ? 0 : 1;
        if (*from == *to) CHECK(volume(p, c, 8) == anew);
      }
    }
  }
  CHECK(recounted > 20);
}

// Where everything divides, the cost by which plans are chosen is exact: all ranks receive ranks * cost * size.
TEST_CASE("costs are exact where every axis is 4 and everything divides") {
  const std::vector<int> sizes{4, 4, 4};
  const Case c = plain(sizes, {64, 64});
  Dice dice(4);
  for (int i = 0; i < 300; ++i) {
    const LayoutValue from = random_layout(dice, 3, 2), to = random_layout(dice, 3, 2);
    const LayoutPlan p = detail::plan_between(from, to);
    INFO(code(from) << " to " << code(to));
    CHECK(static_cast<double>(volume(p, c, 1)) == p.cost * 64 * 64 * 64);
  }
}

// Conversions of the literature on a mesh of 4 x 8, bytes per rank as shares of the tensor, at most what is published
// for chains of collectives.
using Grid = Mesh<dp, tp>;
template <class... Ps>
using On = Layout<Grid, Ps...>;
template <class From, class To>
constexpr double share_on_4_x_8() {
  constexpr std::array<int, 2> sizes{4, 8};
  constexpr std::array<std::size_t, 2> extents{32, 32};
  return static_cast<double>(plan_volume(plan<From, To, Dims<batch, seq>>, sizes, extents, 1)) / (32. * 32 * 32);
}
static_assert(share_on_4_x_8<On<Shard<batch, dp, tp>>, On<Shard<batch, tp, dp>>>() <= .031);
static_assert(share_on_4_x_8<On<Partial<dp>>, On<Shard<batch, tp>>>() <= .188);
static_assert(share_on_4_x_8<On<Partial<dp>, Shard<batch, tp>>, On<>>() <= 1.063);
static_assert(share_on_4_x_8<On<Partial<dp>, Shard<batch, tp>>, On<Shard<batch, dp, tp>>>() <= .125);
static_assert(share_on_4_x_8<On<Partial<dp>, Shard<batch, tp>>, On<Shard<batch, tp, dp>>>() <= .094);
static_assert(share_on_4_x_8<On<Partial<dp>, Partial<tp>>, On<Shard<batch, dp, tp>>>() <= .969);
static_assert(share_on_4_x_8<On<Partial<dp>, Partial<tp>>, On<>>() <= 1.938);
static_assert(share_on_4_x_8<On<Shard<batch, dp, tp>>, On<Shard<batch, tp>>>() <= .125);
static_assert(share_on_4_x_8<On<Shard<batch, dp, tp>>, On<Shard<seq, dp, tp>>>() <= .082);
static_assert(share_on_4_x_8<On<Shard<batch, dp>, Shard<seq, tp>>, On<Shard<batch, tp>, Shard<seq, dp>>>() <= .082);

TEST_CASE("a group of one and nothing to hold cost nothing") {
  const LayoutValue whole = replicated(2, 1), cut = inserted(whole, 0, 0, 0);
  CHECK(volume(detail::plan_between(cut, whole), plain({1, 3}, {10}), 4) == 0);
  CHECK(volume(detail::plan_between(cut, whole), plain({3, 1}, {0}), 4) == 0);
  CHECK(volume(detail::plan_between(cut, whole), plain({3, 1}, {10}), 4) == 80);
  CHECK(volume(detail::plan_between(cut, whole), plain({3, 2}, {10}), 4) == 160);
}

}  // namespace
