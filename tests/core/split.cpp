// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/split.hpp"

#include <doctest/doctest.h>

#include <initializer_list>

namespace {

__extension__ using Wide = unsigned __int128;
using meshwise::Range;
using meshwise::split;
using meshwise::split_begin;

static_assert(split(5, 4, 0) == Range{0, 1} && split(5, 4, 3) == Range{3, 2});
static_assert(split(2, 4, 0) == Range{0, 0} && split(2, 4, 1) == Range{0, 1} && split(2, 4, 3) == Range{1, 1});
static_assert(split(0, 3, 2) == Range{0, 0} && split(9, 1, 0) == Range{0, 9});
static_assert(Range{3, 4}.end() == 7);

TEST_CASE("parts are in order, disjoint, cover everything and differ by at most one") {
  for (std::size_t count = 0; count <= 60; ++count) {
    for (std::size_t n = 1; n <= 9; ++n) {
      std::size_t next = 0, least = count, most = 0;
      for (std::size_t k = 0; k < n; ++k) {
        const Range part = split(count, n, k);
        CHECK(part.begin == next);
        CHECK(part.begin == k * count / n);
        CHECK((part.size != 0 || count < n));
        next = part.end();
        least = part.size < least ? part.size : least;
        most = part.size > most ? part.size : most;
      }
      CHECK(next == count);
      CHECK(most - least <= 1);
    }
  }
}

TEST_CASE("cutting a part again by m is cutting the whole by n m") {
  std::size_t wrong = 0;
  for (std::size_t count = 0; count <= 60; ++count) {
    for (std::size_t n = 1; n <= 6; ++n) {
      for (std::size_t m = 1; m <= 6; ++m) {
        for (std::size_t k = 0; k < n; ++k) {
          const Range part = split(count, n, k);
          wrong += split(count, n * m, k * m).begin != part.begin;
          wrong += split(count, n * m, k * m + m - 1).end() != part.end();
        }
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("the largest counts do not overflow") {
  constexpr std::size_t top = std::size_t{1} << 63;
  static_assert(split(top, 2, 1) == Range{top / 2, top / 2});
  static_assert(split(~std::size_t{0}, 1, 0) == Range{0, ~std::size_t{0}});
  for (const std::size_t count : {top - 1, top, top + 1, ~std::size_t{0}}) {
    for (const std::size_t n :
         {std::size_t{2}, std::size_t{3}, std::size_t{7}, std::size_t{1000}, std::size_t{65537}}) {
      std::size_t next = 0;
      for (std::size_t k = 0; k < n; ++k) {
        const Range part = split(count, n, k);
        REQUIRE(part.begin == next);
        REQUIRE(part.begin == static_cast<std::size_t>(static_cast<Wide>(count) * k / n));
        REQUIRE(part.size - count / n <= 1);
        next = part.end();
      }
      CHECK(next == count);
    }
  }
}

}  // namespace
