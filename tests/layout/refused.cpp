// SPDX-License-Identifier: Apache-2.0
#include "meshwise/layout/refused.hpp"

#include <doctest/doctest.h>

#include <type_traits>

#include "meshwise/layout/placement.hpp"

namespace {

using namespace meshwise;

template <class T>
concept Complete = requires {
  sizeof(T);
};

using Reason = refused<because::axis_placed_twice<tp>, try_<list_each_axis_once>, Shard<seq, tp>>;

// A refusal is a type that nothing can be made of, and no verdict that allows.
static_assert(!Complete<Reason> && !detail::is_accepted<Reason> && !detail::is_accepted<int>);
static_assert(detail::is_accepted<detail::accepted<int>> && std::is_same_v<detail::accepted<int>::is, int>);

TEST_CASE("refusals: checked when this file is compiled") { CHECK(!detail::is_accepted<Reason>); }

}  // namespace
