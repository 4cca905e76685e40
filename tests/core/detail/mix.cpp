// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/detail/mix.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <set>

using meshwise::detail::mix;

TEST_CASE("mix tells sequences apart") {
  static_assert(mix(mix(0, 1), 2) != mix(mix(0, 2), 1) && mix(0, 0) != 0 && mix(0, 1) != mix(1, 1));
  std::set<std::uint64_t> seen;
  for (std::uint64_t a = 0; a < 60; ++a) {
    for (std::uint64_t b = 0; b < 60; ++b) seen.insert(mix(mix(0, a), b));
  }
  CHECK(seen.size() == 3600);
}

TEST_CASE("each bit of a number changes about half of the hash") {
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{7}, ~std::uint64_t{0}}) {
    for (int bit = 0; bit < 64; ++bit) {
      const int changed = std::popcount(mix(1, value) ^ mix(1, value ^ (std::uint64_t{1} << bit)));
      CHECK(changed > 12);
      CHECK(changed < 52);
    }
  }
}
