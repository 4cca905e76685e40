// SPDX-License-Identifier: Apache-2.0
#include "meshwise/layout/placement.hpp"

#include <doctest/doctest.h>

namespace {

using namespace meshwise;
using namespace meshwise::detail;

static_assert(Placement<Replicate<tp>> && Placement<Shard<seq, tp>> && Placement<Shard<seq, cp, tp>>);
static_assert(Placement<Shard<seq>> && Placement<Partial<tp>> && Placement<Partial<tp, Max>>);
static_assert(!Placement<tp> && !Placement<seq> && !Placement<int>);
static_assert(std::is_same_v<Partial<tp>, Partial<tp, Sum>> && !std::is_same_v<Partial<tp>, Partial<tp, Max>>);

static_assert(std::is_same_v<axes_of<Replicate<tp>>, list<tp>> && std::is_same_v<axes_of<Partial<dp, Min>>, list<dp>>);
static_assert(std::is_same_v<axes_of<Shard<seq, tp, cp>>, list<tp, cp>>);  // the order is the user's
static_assert(std::is_same_v<axes_of<int>, list<>> && std::is_same_v<entries_of<int>, list<>>);
// Entries are as they are written, axes are bare.
static_assert(Placement<Shard<seq, Zigzag<cp>, tp>> && Placement<Shard<seq, Counted<ep>>>);
static_assert(std::is_same_v<axes_of<Shard<seq, Zigzag<cp>, tp>>, list<cp, tp>>);
static_assert(std::is_same_v<entries_of<Shard<seq, Zigzag<cp>, tp>>, list<Zigzag<cp>, tp>>);
static_assert(std::is_same_v<entries_of<Partial<tp, Max>>, list<tp>> &&
              std::is_same_v<entries_of<Replicate<tp>>, list<tp>>);
static_assert(std::is_same_v<shard_over<seq, list<Striped<tp>, cp>>, Shard<seq, Striped<tp>, cp>>);
static_assert(std::is_same_v<shard_over<seq, list<tp, cp>>, Shard<seq, tp, cp>>);
static_assert(std::is_same_v<shard_over<seq, list<>>, Shard<seq>>);
static_assert(std::is_same_v<placement_traits<Shard<seq, tp>>::dim, seq>);
static_assert(std::is_same_v<placement_traits<Partial<tp, Max>>::op, Max>);
static_assert(placement_traits<Replicate<tp>>::replicate && placement_traits<Shard<seq, tp>>::shard &&
              placement_traits<Partial<tp>>::partial);

TEST_CASE("placements: checked when this file is compiled") { CHECK(Placement<Replicate<tp>>); }

}  // namespace
