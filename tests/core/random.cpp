// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/random.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

using namespace meshwise;

// The published vectors of Random123.
static_assert(philox({0, 0, 0, 0}, {0, 0}) ==
              std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
              std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
              std::array<std::uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
static_assert(random_bits(0, 0) == 0xe169c58d6627e8d5ULL && random_bits(0, 1) == 0x9b00dbd8bc57ac4cULL);
static_assert(uniform<float>(1, 2) >= 0 && uniform(1, 2) < 1);

namespace {

constexpr std::uint64_t starts[] = {0, 1, 7, (1ULL << 32) - 3, (1ULL << 33) - 3, (1ULL << 63), ~0ULL - 4};
constexpr std::size_t sizes[] = {0, 1, 2, 3, 5, 7, 8, 64, 1000};

}  // namespace

TEST_CASE("filling gives the values one by one, from any index and across any boundary") {
  for (const std::uint64_t first : starts) {
    for (const std::size_t n : sizes) {
      std::vector<std::uint64_t> bits(n + 1, 42);
      std::vector<float> f(n + 1, 42), g(n + 1, 42);
      std::vector<double> d(n + 1, 42), e(n + 1, 42);
      fill_random_bits(9, first, bits.data(), n);
      fill_uniform(9, first, f.data(), n);
      fill_uniform(9, first, d.data(), n);
      fill_normal(9, first, g.data(), n);
      fill_normal(9, first, e.data(), n);
      bool good = bits[n] == 42 && f[n] == 42 && d[n] == 42 && g[n] == 42 && e[n] == 42;
      for (std::size_t i = 0; i < n; ++i) {
        const std::uint64_t index = first + i;
        good = good && bits[i] == random_bits(9, index);
        good = good && f[i] == uniform<float>(9, index) && d[i] == uniform(9, index);
        good = good && g[i] == normal<float>(9, index) && e[i] == normal(9, index);
      }
      REQUIRE(good);
    }
  }
}

TEST_CASE("uniform numbers lie in [0, 1), and the float is the double rounded down") {
  for (std::uint64_t i = 0; i < 100000; ++i) {
    const double d = uniform(3, i);
    const float f = uniform<float>(3, i);
    REQUIRE((d >= 0 && d < 1 && f < 1));
    REQUIRE(static_cast<double>(f) == std::floor(d * 0x1p24) * 0x1p-24);
  }
  CHECK(detail::to_uniform<float>(~0ULL) == 1 - 0x1p-24F);
  CHECK(detail::to_uniform<double>(~0ULL) == 1 - 0x1p-53);
  CHECK(detail::to_uniform<double>(0) == 0);
}

TEST_CASE("neighbouring indices, seeds and streams look independent") {
  // 64 counts of ones per bit position: mean n/2, deviation sqrt(n)/2. Six deviations over some 10^3 tests.
  constexpr std::uint64_t n = 4096;
  const auto check = [](auto value) {
    std::array<int, 64> ones{}, flips{};
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::uint64_t now = value(i), next = value(i + 1);
      for (std::size_t b = 0; b < 64; ++b) {
        ones[b] += static_cast<int>(now >> b & 1);
        flips[b] += static_cast<int>((now ^ next) >> b & 1);
      }
    }
    for (std::size_t b = 0; b < 64; ++b) {
      CHECK(std::abs(ones[b] - 2048) < 192);
      CHECK(std::abs(flips[b] - 2048) < 192);
    }
  };
  check([](std::uint64_t i) { return random_bits(5, i); });
  check([](std::uint64_t i) { return random_bits(i, 5); });
  check([](std::uint64_t i) { return random_bits(stream_seed(5, i), 0); });
  check([](std::uint64_t i) { return random_bits(stream_seed(i, 5), 0); });
  check([](std::uint64_t i) { return random_bits(5, i << 32); });
  check([](std::uint64_t i) { return random_bits(5, i) ^ stream_seed(5, i / 2); });
}

TEST_CASE("uniform numbers fill 256 bins evenly") {
  std::array<double, 256> bins{};
  constexpr int n = 1 << 18;
  for (std::uint64_t i = 0; i < n; ++i) bins[static_cast<std::size_t>(uniform(17, i) * 256)] += 1;
  double chi = 0;
  for (const double b : bins) chi += (b - n / 256.0) * (b - n / 256.0) / (n / 256.0);
  CHECK(chi > 255 - 6 * std::sqrt(510.0));
  CHECK(chi < 255 + 6 * std::sqrt(510.0));
}

TEST_CASE("normal numbers are normal") {
  constexpr std::size_t n = 1 << 18;
  std::vector<double> x(n);
  fill_normal(23, 0, x.data(), n);
  double mean = 0, variance = 0, pairs = 0;
  for (std::size_t i = 0; i < n; ++i) {
    mean += x[i] / n;
    variance += x[i] * x[i] / n;
    pairs += x[i] * x[i ^ 1] / n;
  }
  CHECK(std::abs(mean) < 6 / std::sqrt(double{n}));
  CHECK(std::abs(variance - 1) < 6 * std::sqrt(2 / double{n}));
  CHECK(std::abs(pairs) < 9 / std::sqrt(double{n}));
  // Kolmogorov-Smirnov: the probability of a distance above 3 / sqrt(n) is below 10^-7.
  std::sort(x.begin(), x.end());
  double distance = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double p = 0.5 * std::erfc(-x[i] / std::sqrt(2.0));
    distance = std::max(distance, std::abs(p - (double(i) + 0.5) / n));
  }
  CHECK(distance < 3 / std::sqrt(double{n}));
  CHECK(x.back() < 8.6);
}

TEST_CASE("the logarithm and the sine behind normal numbers are those of mathematics") {
  double log_error = 0, sine_error = 0, circle_error = 0;
  const long double turn = 2 * std::acos(-1.0L);
  const auto check = [&](double u) {
    const auto exact = std::log(static_cast<long double>(u));
    const long double error = std::abs(static_cast<long double>(detail::log_of(u)) - exact);
    log_error = std::max(log_error, static_cast<double>(error / (std::abs(exact) + 1e-300L)));
    const detail::SineCosine value = detail::sine_cosine_of_turns(u == 1 ? 0 : u);
    const long double angle = turn * static_cast<long double>(u);
    const long double sine = std::abs(std::sin(angle) - static_cast<long double>(value.sine));
    const long double cosine = std::abs(std::cos(angle) - static_cast<long double>(value.cosine));
    sine_error = std::max({sine_error, static_cast<double>(sine), static_cast<double>(cosine)});
    circle_error = std::max(circle_error, std::abs(value.sine * value.sine + value.cosine * value.cosine - 1));
  };
  for (std::uint64_t i = 0; i < 100000; ++i) check(uniform(29, i) + 0x1p-53);
  for (int k = 0; k <= 64; ++k) {
    check(k == 0 ? 0x1p-53 : k / 64.0);
    check(std::nextafter(k == 0 ? 0.5 : k / 64.0, 0.0));
    if (k < 54) check(std::ldexp(1.0, -k));
  }
  CHECK(log_error < 5e-16);
  CHECK(sine_error < 4e-16);
  CHECK(circle_error < 6e-16);
  CHECK(detail::log_of(1.0) == 0);
}

TEST_CASE("normal numbers have the same bits in every build") {
  std::uint64_t hash = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    hash = (hash ^ std::bit_cast<std::uint64_t>(normal(31, i))) * 0x100000001b3ULL;
  }
  CHECK(hash == 12718867822228642896ULL);
}
