// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/yield_cost.hpp"

#include <doctest/doctest.h>

#include <cstdint>

using meshwise::detail::YieldCost;

namespace {

constexpr std::int64_t ms = 1'000'000, start = 5'000 * ms;

}  // namespace

TEST_CASE("yields are cheap until one was slow") {
  YieldCost cost;
  CHECK(!cost.high());
  cost.took(3 * ms, start);
  CHECK(cost.still_high(start));
  CHECK(cost.still_high(start + 3 * ms - 1));
  CHECK(!cost.still_high(start + 3 * ms));
}

TEST_CASE("what others notice meanwhile changes nothing") {
  YieldCost cost;
  cost.took(3 * ms, start);
  cost.took(40 * ms, start + 2 * ms);
  CHECK(!cost.still_high(start + 3 * ms));
}

TEST_CASE("each time that yields are as dear at once the sleep is twice as long, up to a second") {
  YieldCost cost;
  std::int64_t now = start, span = 10 * ms;
  for (int k = 0; k < 12; ++k) {
    cost.took(10 * ms, now);
    CHECK(cost.still_high(now + span - 1));
    CHECK(!cost.still_high(now + span));
    now += span + 10 * ms;  // tried at once
    span = span < 500 * ms ? 2 * span : 1'000 * ms;
  }
}

TEST_CASE("a slow yield much later is the first one again") {
  YieldCost cost;
  cost.took(10 * ms, start);
  cost.took(10 * ms, start + 20 * ms);  // now 20 ms
  cost.took(10 * ms, start + 20 * ms + 20 * ms + 25 * ms);
  CHECK(!cost.still_high(start + 65 * ms + 10 * ms));
}

TEST_CASE("after as long a time without it is forgotten, whatever came before") {
  YieldCost cost;
  cost.took(10 * ms, start);
  CHECK(!cost.still_high(start + 20 * ms));
  cost.took(5 * ms, start + 21 * ms);
  CHECK(!cost.still_high(start + 26 * ms));
}

TEST_CASE("one that is longer than the longest sleep") {
  YieldCost cost;
  cost.took(60'000 * ms, start);
  CHECK(cost.still_high(start + 1'000 * ms - 1));
  CHECK(!cost.still_high(start + 1'000 * ms));
}

TEST_CASE("the clock of high() is the monotonic one") {
  YieldCost cost;
  cost.took(900 * ms);
  CHECK(cost.high());
  YieldCost past;
  past.took(1 * ms, meshwise::monotonic_nanoseconds() - 500 * ms);
  CHECK(!past.high());
  CHECK(!past.high());
}
