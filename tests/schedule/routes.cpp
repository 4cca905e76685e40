// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/routes.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "meshwise/schedule/contract.hpp"

using namespace meshwise;

TEST_CASE("the index lists every holder and taker of a block, and nothing else") {
  const Routes routes(3, {{0, 2}, {}, {2, 2, 1}}, {{1}, {0, 1}, {}});
  CHECK(routes.valid());
  CHECK(routes.ranks() == 3);
  CHECK(routes.holders[0] == detail::List<Routes::Place>{{0, 0}});
  CHECK(routes.holders[1] == detail::List<Routes::Place>{{2, 2}});
  CHECK(routes.holders[2] == detail::List<Routes::Place>{{0, 1}, {2, 0}, {2, 1}});
  CHECK(routes.takers[0] == detail::List<Routes::Place>{{1, 0}});
  CHECK(routes.takers[1] == detail::List<Routes::Place>{{0, 0}, {1, 1}});
  CHECK(routes.takers[2].empty());
}

TEST_CASE("routes that cannot be are told apart") {
  CHECK_FALSE(Routes(1, {{0}}, {{0}, {0}}).valid());  // sides of different size
  CHECK_FALSE(Routes(1, {{0}}, {{1}}).valid());       // a block that does not exist
  CHECK_FALSE(Routes(1, {{-1}}, {{}}).valid());
  CHECK_FALSE(Routes(-1, {{}}, {{}}).valid());
  CHECK_FALSE(Routes(2, {{0}, {}}, {{}, {1}}).valid());  // wanted, but nobody has it
  CHECK(Routes(2, {{0}, {}}, {{}, {0}}).valid());        // a block that nobody has and nobody wants
  CHECK(Routes(0, {{}, {}}, {{}, {}}).valid());
}

TEST_CASE("shapes compare routes by what they say") {
  const Routes one(1, {{0}, {}}, {{}, {0}});
  const Routes same = one;
  const Routes other(1, {{}, {0}}, {{0}, {}});
  const auto shape = [](const Routes* routes) { return Shape{Operation::exchange, 2, 0, false, routes}; };
  CHECK(shape(&one) == shape(&same));
  CHECK_FALSE(shape(&one) == shape(&other));
  CHECK_FALSE(shape(&one) == shape(nullptr));
  CHECK(valid(shape(&one)));
  CHECK_FALSE(valid(shape(nullptr)));
  CHECK_FALSE(valid(Shape{Operation::exchange, 3, 0, false, &one}));    // routes of another group
  CHECK_FALSE(valid(Shape{Operation::exchange, 2, 0, true, &one}));     // in place
  CHECK_FALSE(valid(Shape{Operation::all_gather, 2, 0, false, &one}));  // routes of no use
}
