// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/detail/logarithm.hpp"

#include <doctest/doctest.h>

using namespace meshwise::detail;

static_assert(ceil_lg(1) == 0 && floor_lg(1) == 0 && power_of_two(1) && !power_of_two(0));
static_assert(ceil_lg(2147483647) == 31 && floor_lg(2147483647) == 30);

TEST_CASE("logarithms enclose their argument") {
  for (int n = 1; n < 5000; ++n) {
    CHECK((1 << floor_lg(n)) <= n);
    CHECK((2 << floor_lg(n)) > n);
    CHECK((1 << ceil_lg(n)) >= n);
    if (n > 1) CHECK((1 << (ceil_lg(n) - 1)) < n);
    CHECK(power_of_two(n) == (floor_lg(n) == ceil_lg(n)));
  }
}
