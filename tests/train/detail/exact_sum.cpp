// SPDX-License-Identifier: Apache-2.0
#include "meshwise/train/detail/exact_sum.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "meshwise/core/random.hpp"

namespace {

using namespace meshwise;
using Exact = detail::ExactSum;

void add(Exact& sum, const std::vector<double>& x, std::size_t begin, std::size_t end) {
  sum.add(end - begin, [&](std::size_t i) { return x[begin + i]; });
}
double value(const Exact::Words& words) { return Exact::value(std::span<const std::uint64_t, Exact::size>(words)); }
double sum_of(const std::vector<double>& x) {
  Exact sum;
  add(sum, x, 0, x.size());
  return value(sum.words());
}

}  // namespace

TEST_CASE("exact sum: order and grouping change nothing, over the whole range of doubles") {
  std::vector<double> x;
  for (std::uint64_t i = 0; i < 9000; ++i) {
    x.push_back(std::ldexp(uniform(1, i), static_cast<int>(random_bits(2, i) % 2090) - 1080));
  }
  Exact once;
  add(once, x, 0, x.size());
  Exact backwards;
  backwards.add(x.size(), [&](std::size_t i) { return x[x.size() - 1 - i]; });
  CHECK(backwards.words() == once.words());
  for (const std::size_t parts : {1U, 2U, 3U, 7U, 9000U}) {
    Exact::Words all{};
    Exact one_by_one;
    for (std::size_t k = 0; k < parts; ++k) {
      const std::size_t begin = k * x.size() / parts, end = (k + 1) * x.size() / parts;
      Exact part;
      add(part, x, begin, end);
      add(one_by_one, x, begin, end);
      const Exact::Words words = part.words();
      for (std::size_t d = 0; d < words.size(); ++d) all[d] += words[d];  // as ranks do
    }
    CHECK(one_by_one.words() == once.words());
    CHECK(value(all) == value(once.words()));
  }
}

TEST_CASE("exact sum: sums that doubles hold are exact, others off by a unit in the last place at most") {
  CHECK(sum_of({}) == 0);
  CHECK(sum_of({0.0, -0.0}) == 0);
  for (const double x : {1.0, 0x1.fffffffffffffp+1023, 0x1p-1022, 0x1p-1074, 0x1.8p-1060, 3.0, 0.1}) {
    CHECK(sum_of({x}) == x);
    CHECK(sum_of(std::vector<double>(8, x / 8)) == x / 8 * 8);
  }
  std::vector<double> integers;
  std::uint64_t total = 0;
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    integers.push_back(static_cast<double>(random_bits(3, i) >> 28));
    total += random_bits(3, i) >> 28;
  }
  const double expected = static_cast<double>(total), found = sum_of(integers);
  CHECK(std::abs(found - expected) <= std::nextafter(expected, HUGE_VAL) - expected);
  // A large number does not swallow small ones.
  std::vector<double> tiny(1U << 20, 0x1p-60);
  tiny.push_back(1);
  CHECK(sum_of(tiny) == 1 + 0x1p-40);
}

TEST_CASE("exact sum: beyond the range it is infinite, and a NaN stays one") {
  const double huge = std::numeric_limits<double>::max(), infinite = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(sum_of({huge, huge}) == infinite);
  CHECK(sum_of({1, infinite, 2}) == infinite);
  CHECK(std::isnan(sum_of({1, nan})));
  CHECK(std::isnan(sum_of({infinite, -nan, infinite})));
}
