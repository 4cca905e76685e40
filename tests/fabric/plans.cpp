// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/plans.hpp"

#include <doctest/doctest.h>

using namespace meshwise;

TEST_CASE("a plan is made once per kind of call, and the cache is bounded") {
  detail::PlanCache<detail::MemoryPlan> cache;
  const Shape shape{Operation::all_reduce, 4, 0, false};
  const auto* const first = &cache.find(shape, Algorithm::direct, 1);
  CHECK(first->plan.steps.size() == 1);
  CHECK(first->messages == 6);
  CHECK(first->settled);
  CHECK(&cache.find(shape, Algorithm::direct, 1) == first);
  const auto& ring = cache.find(shape, Algorithm::ring, 1);
  CHECK(ring.plan.steps.size() == 6);
  CHECK(!ring.settled);
  for (int root = 0; root < 200; ++root) {
    const Shape rooted{Operation::broadcast, 200, root, true};
    CHECK(cache.find(rooted, Algorithm::ring, 1).plan.shape == rooted);
  }
  CHECK(cache.find(shape, Algorithm::direct, 1).messages == 6);
}

TEST_CASE("foreign pieces are counted once per ordered pair") {
  const Move move{0,
                  0,
                  {{0, Buffer::input, 0, 1}, {1, Buffer::input, 0, 1}, {1, Buffer::input, 1, 1}},
                  {{1, Buffer::output, 0, 1}, {2, Buffer::output, 0, 1}}};
  CHECK(detail::foreign_pieces(move) == 3);
}
