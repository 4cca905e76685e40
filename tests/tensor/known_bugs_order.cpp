// SPDX-License-Identifier: Apache-2.0
// Wrong results and hidden costs of orders, views and plans. The numbers in the comments are what went wrong.
//
// Not here, because there is nothing that could go wrong so: placements that only some ranks believe to be equal, and
// costs of looking at placements while a program runs. Both are types, the same on all ranks and gone in the program.
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../layout/plans.hpp"
#include "meshwise/layout/plan.hpp"
#include "meshwise/layout/plan_volume.hpp"
#include "meshwise/tensor/detail/exchange_blocks.hpp"
#include "meshwise/tensor/dropout.hpp"
#include "meshwise/tensor/replicas.hpp"
#include "meshwise/tensor/reshard.hpp"
#include "pieces.hpp"

namespace test {
namespace {

using namespace pieces;

template <class... Ps>
using Square = Doubles<Dims<d0, d1>, Ps...>;

// --- order -----------------------------------------------------------------------------------------------------------

TEST_CASE("the order of the axes of a dim is a part of the layout, and changing it moves data on every rank") {
  // Compared as sets they are equal: nothing moves, or some ranks wait for those that compared otherwise.
  using Major = Row<Shard<d0, dp, tp>>;
  using Minor = Row<Shard<d0, tp, dp>>;
  static_assert(!same<Major, Minor> && !(Major::layout_as_value == Minor::layout_as_value));
  static_assert(!std::is_convertible_v<Major, Minor> && !std::is_assignable_v<Minor&, Major>);
  constexpr const LayoutPlan& steps = plan<Major::layout, Minor::layout>;
  static_assert(steps.is(Transition::exchange) && steps.cost == 3. / 64);
  on_grid({2, 3}, [](const Rank& rank) {
    const auto x = rank.fill<Major>({12}, [](std::size_t i) { return static_cast<double>(i); });
    const std::uint64_t before = rank.mesh.traffic<dp, tp>().calls;
    const auto y = reshard<Minor::layout>(x);
    require(rank.mesh.traffic<dp, tp>().calls == before + 1, "all six, also the two whose part is the same");
    const double first = 2.0 * (2 * rank.mesh.coordinate<tp>() + rank.mesh.coordinate<dp>());
    require_equal(local(y), {first, first + 1}, "tp is major");
    require_equal(local(reshard<Major::layout>(y)), local(x), "and back");
  });
}

TEST_CASE("columns become rows: what arrives is put in its place, not one block behind the other") {
  // [[1, 2], [3, 4], [5, 6], [7, 8]], a column each. Blocks as they come: [[1, 3], [2, 4]] on the first rank.
  using Columns = Square<Shard<d1, tp>>;
  using Rows = Square<Shard<d0, tp>>;
  on_grid({1, 2}, [](const Rank& rank) {
    const auto columns = holding<Columns>(rank, {4, 2}, by<tp>(rank, {1, 3, 5, 7}, {2, 4, 6, 8}));
    const auto rows = convert<Shard<d0, tp>>(columns);
    static_assert(same<decltype(rows), Rows>);
    require_equal(local(rows), by<tp>(rank, {1, 2, 3, 4}, {5, 6, 7, 8}), "rows");
    require_equal(local(convert<Shard<d1, tp>>(rows)), local(columns), "columns again");
    require_equal(local(convert<Replicate<tp>>(columns)), {1, 2, 3, 4, 5, 6, 7, 8}, "gathered from columns");
  });
}

// --- plans -----------------------------------------------------------------------------------------------------------

template <class From, class To>
inline constexpr const LayoutPlan& steps_between = plan<On<From>, On<To>>;
static_assert(steps_between<Partial<tp>, Shard<d0, tp>>.is(Transition::reduce_scatter), "not all_reduce and slice");
static_assert(steps_between<Shard<d0, tp>, Shard<d1, tp>>.is(Transition::all_to_all), "not all_gather and slice");
static_assert(steps_between<Shard<d0, Zigzag<tp>>, Shard<d0, tp>>.is(Transition::exchange), "nor here");
static_assert(plan<On<Shard<d0, dp>, Shard<d1, tp>>, On<Shard<d0, tp>, Shard<d1, dp>>>.is(Transition::exchange));
static_assert(plan<On<Shard<d0, dp>, Shard<d1, tp>>, On<Shard<d0, dp>, Shard<d1, tp>>>.count == 0);

TEST_CASE("nothing is gathered to more than the larger of both ends, and no detour is cheaper than a plan") {
  // Hidden gathers: a change between two layouts of shards went by way of a tensor that is whole on every rank.
  using namespace plans;
  Dice dice(27);
  const auto share = [](const LayoutValue& layout) { return detail::sharded_axes(layout); };
  for (int i = 0; i < 3000; ++i) {
    const int axes = 1 + dice.roll(4), dims = 1 + dice.roll(3);
    const LayoutValue from = random_layout(dice, axes, dims, true), to = random_layout(dice, axes, dims, true);
    const LayoutPlan steps = detail::plan_between(from, to);
    const int fewest = share(from) < share(to) ? share(from) : share(to);
    for (const PlanStep& step : steps) {
      if (!communicates(step.what)) continue;
      INFO(code(from) << " to " << code(to) << " by " << code(step.after));
      CHECK(share(step.after) >= fewest);
    }
  }
  // The detour, among all layouts of two axes that differ from the ends in both.
  const std::vector<LayoutValue> all = all_layouts(replicated(2, 2), 0);
  const auto cost = [](const LayoutValue& a, const LayoutValue& b) { return detail::plan_between(a, b).cost; };
  for (const LayoutValue& a : all) {
    for (const LayoutValue& b : all) {
      for (const LayoutValue& c : all) {
        if (detail::moving_axes(a, c) != 3) continue;
        INFO(code(a) << " to " << code(c) << " by " << code(b));
        CHECK(cost(a, c) <= cost(a, b) + cost(b, c));
      }
    }
  }
}

// --- random numbers --------------------------------------------------------------------------------------------------

TEST_CASE("what is dropped is a function of seed and global index: equal in replicas, different in shards") {
  // A seed per rank gives replicas that differ; one seed and local indices give all shards the same mask.
  const std::size_t rows = 24, columns = 5;
  std::vector<double> whole;
  on_grid({1, 1}, [&](const Rank& rank) {
    const auto ones = rank.fill<Square<>>({rows, columns}, [](std::size_t) { return 1.0; });
    whole = local(dropout(ones, 0.5, 7));
  });
  on_grid({2, 2}, [&](const Rank& rank) {
    const auto check = [&]<class X>(detail::type<X>) {
      const auto ones = rank.fill<X>({rows, columns}, [](std::size_t) { return 1.0; });
      const auto mask = dropout(ones, 0.5, 7);
      require_equal(rank.denoted(mask), whole, "as on one rank");
      check_replicas(mask);
      return mask;
    };
    const auto halves = check(detail::type<Square<Shard<d0, tp>>>{});
    check(detail::type<Square<Shard<d0, dp, tp>>>{});
    check(detail::type<Square<Shard<d0, Zigzag<tp>>, Shard<d1, dp>>>{});
    check(detail::type<Square<>>{});
    // The halves side by side, as if they were summands: where both keep an element it is 4.
    const Square<Partial<tp>> side_by_side(rank.mesh, {rows / 2, columns}, halves.storage(), halves.offset());
    const std::vector<double> sums = local(convert<Replicate<tp>>(side_by_side));
    std::size_t differ = 0;
    for (const double sum : sums) differ += sum == 2 ? 1 : 0;
    require(differ > 0, "the two masks are not one");
  });
}

// --- sizes beyond 32 bits --------------------------------------------------------------------------------------------

constexpr std::size_t billion = 1'000'000'000;
static_assert(split(4 * billion, 4, 3) == Range{3 * billion, billion}, "of four parts the last one begins at 3e9");
static_assert(random_bits(7, 5) != random_bits(7, (std::uint64_t{1} << 32) + 5), "indices are not cut off");
constexpr std::array<int, 2> one_by_four{1, 4};
constexpr std::array<std::size_t, 1> four_billion{4 * billion};
static_assert(plan_volume(plan<On<Shard<d0, tp>>, On<>>, one_by_four, four_billion, 8) == 96 * billion);

TEST_CASE("four parts of 1e9 elements: displacements that do not fit 32 bits") {
  // 3e9 is negative as an int.
  const detail::Cut cut(4 * billion, 4, 0);
  const detail::CutBox rows(cut, 4, 1, 1), columns(cut, 4, 2, 1);
  CHECK(rows.inside(3).offset == 3 * billion);
  CHECK(columns.inside(3).stride == 4 * billion);
  CHECK(columns.alone(3).size() == 2 * billion);
  const detail::ExchangeBox box(cut, detail::Cut(4, 4, 0), true, 4, 1, 1, 1);
  CHECK(box.size() == 16 * billion);
  CHECK(box.inside_from(3, 1).offset == 3 * billion);

  on_grid({1, 4}, [](const Rank& rank) {
    using From = Row<Shard<d0, Counted<tp>>>;
    using To = Row<Shard<d0, Zigzag<tp>>>;
    const Extent uneven = Extent::of_parts({0, 3 * billion, billion - 1, 1}), whole = 4 * billion;
    const LayoutValue &from = From::layout_as_value, &to = To::layout_as_value;
    const detail::ExchangeBlocks blocks(rank.mesh.view(), 2, {&from, {&uneven}}, {&to, {&whole}});
    require(blocks.elements() == 4 * billion, "elements");
    // The second rank holds 3e9 elements; the last of its blocks, half of a zigzag part, begins at 2.5e9.
    std::size_t end = 0;
    Shape shape;
    shape.routes = &blocks.routes();
    for (std::size_t i = 0; i < blocks.routes().held[1].size(); ++i) {
      const Region region = detail::ExchangeBlocks::locate(&blocks, shape, Buffer::input, 1, static_cast<int>(i));
      const std::size_t last = region.offset + (region.repeat - 1) * region.stride + region.run;
      end = last > end ? last : end;
    }
    require(end == 3 * billion, "to the end of the piece");
  });
}

}  // namespace
}  // namespace test
