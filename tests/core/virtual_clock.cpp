// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/virtual_clock.hpp"

#include <doctest/doctest.h>

using namespace meshwise;

TEST_CASE("a virtual clock goes forward when it is told to, and never back") {
  VirtualClock clock;
  const std::int64_t begin = clock.now();
  CHECK(begin > 0);
  CHECK(clock.now() == begin);
  clock.advance(1.5);
  CHECK(clock.now() == begin + 1'500'000'000);
  clock.advance(-1);
  clock.wait_until(begin);
  CHECK(clock.now() == begin + 1'500'000'000);
  clock.wait_until(begin + 2'000'000'000);
  CHECK(detail::time_by(&clock) == begin + 2'000'000'000);
  CHECK(detail::time_by(nullptr) > 0);
}
