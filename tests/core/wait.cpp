// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/wait.hpp"

#include <doctest/doctest.h>

#include <initializer_list>

#include "meshwise/core/deadline.hpp"

using namespace meshwise;

TEST_CASE("a waiting rank spins without looking around, then looks more and more often") {
  for (const bool crowded : {false, true}) {
    detail::Backoff backoff(crowded);
    int quiet = 0;
    while (!backoff.pause()) ++quiet;
    CHECK(quiet == (crowded ? 15 : 1023));
    int gap = 0;
    int longest = 0;
    for (int k = 0; k < 2000; ++k) {
      gap = backoff.pause() ? 0 : gap + 1;
      longest = gap > longest ? gap : longest;
    }
    CHECK(longest < 16);
  }
}

TEST_CASE("in the end it sleeps") {
  detail::Backoff backoff(false);
  for (int k = 0; k < 1024 + 512; ++k) backoff.pause();
  const std::int64_t start = monotonic_nanoseconds();
  for (int k = 0; k < 50; ++k) CHECK(backoff.pause());
  CHECK(monotonic_nanoseconds() - start >= 50 * 20'000);
}
