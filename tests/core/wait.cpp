// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/wait.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>

#include "meshwise/core/deadline.hpp"
#include "meshwise/core/yield_cost.hpp"

using namespace meshwise;

TEST_CASE("a waiting rank spins without looking around, then looks more and more often") {
  for (const bool crowded : {false, true}) {
    detail::Backoff backoff(crowded);
    int quiet = 0;
    while (!backoff.pause()) ++quiet;
    CHECK(quiet <= (crowded ? 15 : 1023));  // less where a yield has let other programs run
    CHECK(quiet >= (crowded ? 8 : 1023));
    int gap = 0;
    int longest = 0;
    for (int k = 0; k < 2000; ++k) {
      gap = backoff.pause() ? 0 : gap + 1;
      longest = gap > longest ? gap : longest;
    }
    CHECK(longest < 16);
  }
}

TEST_CASE("where yields are dear it sleeps after the pauses, and tries no yield") {
  for (const bool crowded : {false, true}) {
    detail::YieldCost cost;
    cost.took(900'000'000);
    detail::Backoff backoff(crowded, &cost);
    for (int k = 0; k < (crowded ? 8 : 1024); ++k) {
      backoff.pause();
      CHECK(!backoff.tired());
    }
    CHECK(backoff.pause());
    CHECK(backoff.tired());
  }
}

TEST_CASE("slow yields count where there were few others before, and only for who judges") {
  // No yield is slow for sure, so that the counter alone is looked at.
  detail::YieldCost cost;
  int quick = 0;
  {
    detail::Backoff backoff(true, &cost, &quick);
    for (int k = 0; k < 8; ++k) backoff.pause();
    CHECK(quick == 0);
    for (int k = 0; k < 100 && !backoff.tired(); ++k) {
      backoff.pause();
      CHECK(quick >= 0);
      CHECK(quick <= detail::YieldCost::few);
    }
  }
  cost.took(900'000'000);
  const int before = quick;
  detail::Backoff backoff(true, &cost, &quick);
  for (int k = 0; k < 20; ++k) backoff.pause();
  CHECK(quick == before);
}

TEST_CASE("skipping the pauses it yields at once") {
  detail::YieldCost cost;
  cost.took(900'000'000);
  detail::Backoff backoff(true, &cost);
  backoff.skip_pauses();
  CHECK(!backoff.tired());
  CHECK(backoff.pause());
  CHECK(backoff.tired());
}

TEST_CASE("a stopwatch knows about how much time has gone by") {
  const detail::Stopwatch watch;
  CHECK(watch.beyond(3'600'000'000'000) == 0);
  const std::int64_t start = monotonic_nanoseconds();
  while (monotonic_nanoseconds() - start < 20'000'000) {}
  const std::int64_t taken = watch.beyond(1'000'000);  // of clocks from 150 MHz to 60 GHz
  CHECK(taken > 1'000'000);
}

TEST_CASE("in the end it sleeps") {
  detail::Backoff backoff(false);
  for (int k = 0; k < 1024 + 512; ++k) backoff.pause();
  const std::int64_t start = monotonic_nanoseconds();
  for (int k = 0; k < 50; ++k) CHECK(backoff.pause());
  CHECK(monotonic_nanoseconds() - start >= 50 * 20'000);
}
