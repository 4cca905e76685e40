// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/delaying/delays.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>

using namespace meshwise;
using detail::DelayLine;

namespace {

std::int64_t milliseconds(std::int64_t number) { return number * 1'000'000; }

}  // namespace

TEST_CASE("a transfer is due alpha + beta * bytes after it is entered, and the bytes of one link follow each other") {
  DelayLine line({0.5, 1e-3, 0, 0, Landing::late}, 3);
  const std::int64_t before = monotonic_nanoseconds();
  const std::int64_t first = line.next(1000).due;  // one second of bytes
  const std::int64_t second = line.next(2000).due;
  const std::int64_t third = line.next(0).due;
  CHECK(first >= before + milliseconds(1500));
  CHECK(second >= before + milliseconds(3500));
  CHECK(second <= first + milliseconds(2000) + 1);
  CHECK(third == second);
  DelayLine other({0.5, 1e-3, 0, 0, Landing::late}, 3);
  CHECK(other.next(0).due < first);  // links do not wait for each other
}

TEST_CASE("transfers of one link are due in order, whatever the jitter, which is bounded and drawn from the seed") {
  const Delays delays{0, 0, 1, 0, Landing::mixed};
  DelayLine one(delays, 5), same(delays, 5), other(delays, 6);
  const std::int64_t begin = monotonic_nanoseconds();
  std::int64_t last = 0;
  int at_once = 0, differ = 0;
  for (int k = 0; k < 200; ++k) {
    const auto draw = one.next(8), again = same.next(8), different = other.next(8);
    CHECK(draw.due >= last);
    last = draw.due;
    CHECK(draw.at_once == again.at_once);
    at_once += draw.at_once ? 1 : 0;
    differ += draw.at_once != different.at_once ? 1 : 0;
  }
  CHECK(last >= begin + milliseconds(900));  // the largest of 200 draws
  CHECK(last <= monotonic_nanoseconds() + milliseconds(1000));
  CHECK(at_once > 50);
  CHECK(at_once < 150);
  CHECK(differ > 50);
}

TEST_CASE("how data lands is what was asked for") {
  for (const Landing landing : {Landing::late, Landing::at_once}) {
    DelayLine line({0, 0, 0, 0, landing}, 1);
    for (int k = 0; k < 20; ++k) CHECK(line.next(0).at_once == (landing == Landing::at_once));
  }
}

TEST_CASE("enormous amounts do not overflow") {
  DelayLine line({1e8, 1, 0, 0, Landing::late}, 1);
  CHECK(line.next(std::numeric_limits<std::uint64_t>::max()).due > monotonic_nanoseconds());
}

TEST_CASE("delays that are no times are refused") {
  const double not_a_number = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {-1.0, 1e9, std::numeric_limits<double>::infinity(), not_a_number}) {
    CHECK_THROWS_WITH_AS(detail::require_delays("delayed", {bad, 0, 0}), doctest::Contains("alpha >= 0"), Error);
    CHECK_THROWS_WITH_AS(detail::require_delays("delayed", {0, bad, 0}), doctest::Contains("beta >= 0"), Error);
    CHECK_THROWS_WITH_AS(detail::require_delays("delayed", {0, 0, bad}), doctest::Contains("jitter >= 0"), Error);
  }
  detail::require_delays("delayed", {0, 0, 0});
}
