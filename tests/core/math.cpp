// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/math.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <vector>

#include "../support/sanitized.hpp"

using namespace meshwise;

static_assert(math::exp(0.0F) == 1.0F && math::tanh(0.0F) == 0.0F && math::exp(-1000.0F) == 0.0F);

namespace {

constexpr std::size_t block = 4096;

/// The distance in units in the last place of the wanted float.
double units(float found, double wanted) {
  int exponent = 0;
  std::frexp(static_cast<float>(wanted), &exponent);
  return std::abs(static_cast<double>(found) - wanted) / std::ldexp(1.0, std::max(exponent, -125) - 24);
}

bool same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

/// Of how many blocks of bit patterns one is looked at.
constexpr std::uint64_t stride = building::sanitized ? 16411 : 521;

/// A dense block of bit patterns of every `stride`: both signs, all exponents.
template <class Check>
void sweep(const Check& check) {
  std::vector<float> x(block), exps(block), tanhs(block);
  for (std::uint64_t first = 0; first < (1ULL << 32); first += block * stride) {
    for (std::size_t k = 0; k < block; ++k) x[k] = std::bit_cast<float>(static_cast<std::uint32_t>(first + k));
    math::exp_all(x.data(), exps.data(), block);
    math::tanh_all(x.data(), tanhs.data(), block);
    for (std::size_t k = 0; k < block; ++k) check(x[k], exps[k], tanhs[k]);
  }
}

}  // namespace

TEST_CASE("exp and tanh hold their bounds over all floats, in bulk as one by one") {
  double exp_worst = 0, tanh_worst = 0;
  int wrong = 0;
  sweep([&](float x, float e, float t) {
    wrong += same(e, math::exp_fast(x)) && same(t, math::tanh_fast(x)) ? 0 : 1;
    if (std::isnan(x)) {
      wrong += std::isnan(e) && std::isnan(t) ? 0 : 1;
      return;
    }
    const double exact = std::exp(static_cast<double>(x));
    if (std::isinf(static_cast<float>(exact)) || static_cast<float>(exact) == 0) {
      wrong += e == static_cast<float>(exact) ? 0 : 1;
    } else {
      exp_worst = std::max(exp_worst, units(e, exact));
    }
    tanh_worst = std::max(tanh_worst, units(t, std::tanh(static_cast<double>(x))));
    wrong += std::signbit(t) == std::signbit(x) && same(math::tanh_fast(-x), -t) && std::abs(t) <= 1 ? 0 : 1;
  });
  CHECK(wrong == 0);
  CHECK(exp_worst < 1.1);
  CHECK(tanh_worst < 2);
}

TEST_CASE("exp and tanh are dense-accurate where they are used most") {
  double exp_worst = 0, tanh_worst = 0;
  for (int i = -500000; i <= 500000; ++i) {
    const float x = static_cast<float>(i) * 2.1e-5F;
    exp_worst = std::max(exp_worst, units(math::exp(8 * x), std::exp(static_cast<double>(8 * x))));
    tanh_worst = std::max(tanh_worst, units(math::tanh(x), std::tanh(static_cast<double>(x))));
  }
  CHECK(exp_worst < 1.1);
  CHECK(tanh_worst < 2);
}

TEST_CASE("the ends of the range") {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(math::exp(infinity) == infinity);
  CHECK(math::exp(-infinity) == 0);
  CHECK(!std::signbit(math::exp(-infinity)));
  CHECK(math::exp(88.72283F) < infinity);
  CHECK(math::exp(88.72284F) == infinity);
  CHECK(math::exp(-103.97F) == std::numeric_limits<float>::denorm_min());
  CHECK(math::exp(-103.98F) == 0);
  CHECK(math::tanh(infinity) == 1);
  CHECK(math::tanh(-infinity) == -1);
  CHECK(std::signbit(math::tanh(-0.0F)));
  CHECK(math::tanh(1e-40F) == 1e-40F);
  CHECK(std::isnan(math::exp(std::numeric_limits<float>::quiet_NaN())));
  CHECK(std::isnan(math::tanh(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("bulk forms: any length, in place, double") {
  for (const std::size_t n : std::initializer_list<std::size_t>{0, 1, 2, 3, 5, 7, 8, 63, 64, 65, 1000}) {
    std::vector<float> x(n + 1), y(n + 1, 42);
    std::vector<double> d(n), z(n);
    for (std::size_t i = 0; i < n; ++i) {
      x[i] = static_cast<float>(i) * 0.37F - 3;
      d[i] = static_cast<double>(x[i]);
    }
    x[n] = 42;
    math::exp_all(x.data(), y.data(), n);
    math::exp_all(d.data(), z.data(), n);
    for (std::size_t i = 0; i < n; ++i) REQUIRE((same(y[i], math::exp(x[i])) && z[i] == math::exp(d[i])));
    math::tanh_all(d.data(), z.data(), n);
    for (std::size_t i = 0; i < n; ++i) REQUIRE(z[i] == math::tanh(d[i]));
    const std::vector<float> before = x;
    math::tanh_all(x.data(), x.data(), n);
    for (std::size_t i = 0; i < n; ++i) REQUIRE(same(x[i], math::tanh(before[i])));
    CHECK((x[n] == 42 && y[n] == 42));
  }
}
