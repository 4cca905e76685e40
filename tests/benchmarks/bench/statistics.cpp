// SPDX-License-Identifier: Apache-2.0
#include "../../../benchmarks/bench/statistics.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace {

using harness::median_interval;

std::vector<double> up_to(int n) {
  std::vector<double> values;
  for (int k = n; k >= 1; --k) values.push_back(k);
  return values;
}

TEST_CASE("percentiles lie between the samples in proportion") {
  CHECK(harness::median({}) == 0);
  CHECK(harness::median({7}) == 7);
  CHECK(harness::median({3, 1, 2}) == 2);
  CHECK(harness::median({4, 1, 3, 2}) == 2.5);
  CHECK(harness::percentile(up_to(101), 99) == 100);
  CHECK(harness::percentile(up_to(101), 0) == 1);
  CHECK(harness::percentile(up_to(101), 100) == 101);
  CHECK(harness::percentile({10, 20}, 25) == 12.5);
}

// Tables of the sign test: of 15 samples the 4th and the 12th, of 20 the 6th and the 15th, of 100 the 40th and 61st.
TEST_CASE("the interval of a median is that of the tables") {
  const auto check = [](int n, double low, double high) {
    const harness::Interval interval = median_interval(up_to(n));
    CHECK(interval.low == low);
    CHECK(interval.high == high);
    CHECK(interval.confidence >= 0.95);
    CHECK(interval.confidence < 1);
  };
  check(6, 1, 6);
  check(15, 4, 12);
  check(20, 6, 15);
  check(100, 40, 61);
}

TEST_CASE("few samples say how little they say") {
  CHECK(median_interval({}).confidence == 0);
  CHECK(median_interval({5}).confidence == 0);
  const harness::Interval five = median_interval(up_to(5));
  CHECK(five.low == 1);
  CHECK(five.high == 5);
  CHECK(five.confidence == doctest::Approx(0.9375));
  const harness::Interval many = median_interval(up_to(20'000));
  CHECK(many.confidence >= 0.95);
  CHECK(many.confidence < 0.96);
}

}  // namespace
