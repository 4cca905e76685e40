// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/detail/sorted.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

using namespace meshwise::detail;

namespace {

static_assert(smaller(2, 3) == 2 && smaller(3, 2) == 2 && larger(2, 3) == 3 && larger(3, 2) == 3);

/// The numbers whose bits are set.
std::vector<int> members(unsigned set) {
  std::vector<int> result;
  for (int i = 0; i < 6; ++i) {
    if ((set >> i & 1u) != 0) result.push_back(i);
  }
  return result;
}

TEST_CASE("first_not_before is std::lower_bound") {
  for (unsigned set = 0; set < 64; ++set) {
    const std::vector<int> numbers = members(set);
    for (int value = -1; value < 8; ++value) {
      const auto expected = std::lower_bound(numbers.begin(), numbers.end(), value) - numbers.begin();
      REQUIRE(first_not_before(numbers, [value](int number) { return number < value; }) ==
              static_cast<std::size_t>(expected));
    }
  }
}

TEST_CASE("all_among is inclusion of sets") {
  for (unsigned some = 0; some < 64; ++some) {
    for (unsigned all = 0; all < 64; ++all) REQUIRE(all_among(members(some), members(all)) == ((some & ~all) == 0));
  }
}

TEST_CASE("ascending means that nothing comes twice") {
  REQUIRE(ascending(std::vector<int>{}));
  REQUIRE(ascending(std::vector<int>{5}));
  REQUIRE(ascending(std::vector<int>{-1, 0, 7}));
  REQUIRE(!ascending(std::vector<int>{0, 0}));
  REQUIRE(!ascending(std::vector<int>{0, 2, 1}));
}

TEST_CASE("fill") {
  std::vector<int> numbers{1, 2, 3};
  fill(numbers.data(), 2, 7);
  REQUIRE(numbers == std::vector<int>{7, 7, 3});
  fill(numbers.data(), 0, 9);
  REQUIRE(numbers == std::vector<int>{7, 7, 3});
}

}  // namespace
