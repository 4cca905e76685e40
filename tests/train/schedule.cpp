// SPDX-License-Identifier: Apache-2.0
#include "meshwise/train/schedule.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

namespace {

using namespace meshwise;

static_assert(RateSchedule<ConstantRate> && RateSchedule<CosineRate> && RateSchedule<InverseSquareRootRate> &&
              RateSchedule<WarmupStableDecayRate>);
static_assert(!RateSchedule<double>);
static_assert(ConstantRate{1, 4}(1) == 0.25 && ConstantRate{1, 4}(4) == 1 && ConstantRate{1, 4}(1000) == 1);
static_assert(CosineRate{2, 0, 10, 1}(0) == 2 && CosineRate{2, 0, 10, 1}(10) == 1 && CosineRate{2, 0, 10, 1}(99) == 1);

/// Rises in equal steps to the peak, and never leaves [0, peak].
template <class S>
void warms_up(const S& rate) {
  for (std::uint64_t step = 0; step <= rate.warmup; ++step) {
    const double part = rate.warmup == 0 ? 1 : static_cast<double>(step) / static_cast<double>(rate.warmup);
    CHECK(rate(step) == rate.peak * part);
  }
  double before = rate(rate.warmup);
  CHECK(before == rate.peak);
  for (std::uint64_t step = rate.warmup; step < rate.warmup + 300; ++step) {
    CHECK(rate(step) <= before);
    CHECK(rate(step) >= 0);
    before = rate(step);
  }
}

}  // namespace

TEST_CASE("schedules: warm up to the peak, then never rise") {
  for (const std::uint64_t warmup : {0U, 1U, 7U, 100U}) {
    warms_up(ConstantRate{3e-4, warmup});
    warms_up(InverseSquareRootRate{3e-4, warmup});
    for (const std::uint64_t steps : {0U, 1U, 7U, 150U}) {
      warms_up(CosineRate{3e-4, warmup, std::max(steps, warmup + 1), 3e-5});
      warms_up(WarmupStableDecayRate{3e-4, warmup, warmup + steps / 2, std::max(steps, warmup + 1), 3e-5});
    }
  }
}

TEST_CASE("cosine: the formula, symmetric about the middle, and the least at the end") {
  const CosineRate rate{1, 10, 110, 0.2};
  for (std::uint64_t step = 10; step <= 110; ++step) {
    const double done = static_cast<double>(step - 10) / 100;
    CHECK(rate(step) == doctest::Approx(0.2 + 0.4 * (1 + std::cos(3.14159265358979323846 * done))).epsilon(1e-15));
    CHECK(rate(step) + rate(120 - step) == doctest::Approx(1.2).epsilon(1e-15));
  }
  CHECK(rate(60) == doctest::Approx(0.6));
  CHECK(rate(110) == 0.2);
  CHECK(rate(1000000) == 0.2);
  CHECK(CosineRate{1, 10, 5, 0.2}(11) == 0.2);  // no steps left after the warm-up
}

TEST_CASE("inverse square root: four times the steps, half the rate") {
  const InverseSquareRootRate rate{1e-3, 100};
  for (std::uint64_t step = 100; step < 1'000'000; step *= 3) {
    CHECK(rate(4 * step) == doctest::Approx(rate(step) / 2).epsilon(1e-15));
  }
  CHECK(InverseSquareRootRate{1e-3, 0}(0) == 1e-3);
  CHECK(InverseSquareRootRate{1e-3, 0}(4) == 5e-4);
}

TEST_CASE("warm-up, stable, decay: flat, then straight; where the decay begins changes nothing before") {
  const WarmupStableDecayRate rate{1, 10, 80, 100, 0.2};
  for (std::uint64_t step = 10; step <= 80; ++step) CHECK(rate(step) == 1);
  for (std::uint64_t step = 80; step <= 100; ++step) {
    CHECK(rate(step) == doctest::Approx(1 - 0.04 * static_cast<double>(step - 80)).epsilon(1e-15));
  }
  CHECK(rate(100) == 0.2);
  CHECK(rate(101) == 0.2);
  const WarmupStableDecayRate longer{1, 10, 800, 1000, 0.2};
  for (std::uint64_t step = 0; step <= 80; ++step) CHECK(longer(step) == rate(step));
  CHECK(WarmupStableDecayRate{1, 10, 0, 20, 0}(15) == 0.5);  // no stable part
}
