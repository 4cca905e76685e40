// SPDX-License-Identifier: Apache-2.0
#include "meshwise/trace/traffic.hpp"

#include <doctest/doctest.h>

using namespace meshwise;

TEST_CASE("traffic adds up, and a difference is what happened in between") {
  constexpr Traffic a{1, 2, 3, 4};
  constexpr Traffic b{10, 20, 30, 40};
  static_assert(a + b == Traffic{11, 22, 33, 44});
  static_assert((a + b) - a == b);
  Traffic sum;
  for (int k = 0; k < 3; ++k) sum += a;
  CHECK(sum == Traffic{3, 6, 9, 12});
}
