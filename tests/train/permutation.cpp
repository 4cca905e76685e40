// SPDX-License-Identifier: Apache-2.0
#include "meshwise/train/permutation.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <vector>

namespace {

using namespace meshwise;

std::vector<std::uint64_t> all_of(const Permutation& p) {
  std::vector<std::uint64_t> result;
  for (std::uint64_t i = 0; i < p.count(); ++i) result.push_back(p(i));
  return result;
}

}  // namespace

TEST_CASE("permutation: every number once, whatever the count and the seed") {
  for (const std::uint64_t count : {0U, 1U, 2U, 3U, 5U, 7U, 8U, 64U, 1000U, 4097U}) {
    for (const std::uint64_t seed : {0ULL, 1ULL, 2ULL, ~0ULL}) {
      std::vector<int> seen(count);
      for (const std::uint64_t x : all_of(Permutation(count, seed))) {
        REQUIRE(x < count);
        ++seen[x];
      }
      for (const int n : seen) CHECK(n == 1);
    }
  }
}

TEST_CASE("permutation: a function of count and seed, other seeds give other orders") {
  CHECK(all_of(Permutation(1000, 7)) == all_of(Permutation(1000, 7)));
  CHECK(all_of(Permutation(1000, 7)) != all_of(Permutation(1000, 8)));
  CHECK(all_of(Permutation(1000, 7)) != all_of(Permutation(1000, 7 + (1ULL << 32))));
  const Permutation large(~std::uint64_t{0}, 1);
  CHECK(large(0) != large(1));
  CHECK(large(~std::uint64_t{0} - 1) < ~std::uint64_t{0});
  CHECK_THROWS_WITH_AS(Permutation(5, 1)(5), doctest::Contains("below 5"), Error);
  CHECK_THROWS_AS(Permutation(0, 1)(0), Error);
}

TEST_CASE("permutation: all orders of few numbers are about as frequent, and all places of many") {
  std::array<int, 64> orders{};  // by their digits
  const int seeds = 6000;
  for (int seed = 0; seed < seeds; ++seed) {
    const Permutation p(3, static_cast<std::uint64_t>(seed));
    ++orders[p(0) * 16 + p(1) * 4 + p(2)];
  }
  int kinds = 0;
  for (const int n : orders) {
    if (n == 0) continue;
    ++kinds;
    CHECK(std::abs(n - seeds / 6) < 5 * std::sqrt(seeds / 6.0));
  }
  CHECK(kinds == 6);

  // Where numbers go, in eighths, and whether neighbours stay so.
  const Permutation p(8000, 1);
  std::array<std::array<int, 8>, 8> moved{};
  int neighbours = 0;
  for (std::uint64_t i = 0; i < 8000; ++i) {
    ++moved[i / 1000][p(i) / 1000];
    if (i != 0 && (p(i) == p(i - 1) + 1 || p(i) + 1 == p(i - 1))) ++neighbours;
  }
  for (const auto& row : moved) {
    for (const int n : row) CHECK(std::abs(n - 125) < 60);
  }
  CHECK(neighbours < 15);  // 2 are expected
}
