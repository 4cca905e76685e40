// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/deadline.hpp"

#include <doctest/doctest.h>

#include <limits>

using namespace meshwise;

TEST_CASE("no deadline never expires") {
  const double none[] = {
      0.0, -1.0, 1e9, 1e300, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()};
  for (const double seconds : none) {
    Deadline deadline(seconds);
    CHECK(deadline.seconds() == 0);
    CHECK(!deadline.expired());
    CHECK(!deadline.expired());
  }
}

TEST_CASE("a deadline starts at the first question and then stays expired") {
  Deadline deadline(0.02);
  const std::int64_t before = monotonic_nanoseconds();
  while (monotonic_nanoseconds() - before < 30'000'000) {}
  const std::int64_t start = monotonic_nanoseconds();
  CHECK(!deadline.expired());
  while (!deadline.expired()) {}
  CHECK(monotonic_nanoseconds() - start >= 20'000'000);
  CHECK(deadline.expired());
}

TEST_CASE("a long deadline is not over yet") {
  Deadline deadline(999999999.0);
  CHECK(!deadline.expired());
  CHECK(!deadline.expired());
}

TEST_CASE("the clock goes forward") {
  std::int64_t last = monotonic_nanoseconds();
  for (int k = 0; k < 1000; ++k) {
    const std::int64_t now = monotonic_nanoseconds();
    CHECK(now >= last);
    last = now;
  }
}
