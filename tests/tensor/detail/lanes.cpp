// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/detail/lanes.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace {

using meshwise::detail::lane_max;
using meshwise::detail::lane_sum;

TEST_CASE("every index is asked once, whatever the length") {
  for (std::size_t n = 0; n < 70; ++n) {
    std::vector<int> asked(n, 0);
    const auto f = [&](std::size_t i) {
      ++asked[i];
      return static_cast<double>(i * i) - 7.0;
    };
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += static_cast<double>(i * i) - 7.0;
    CHECK(lane_sum<double>(n, f) == sum);
    CHECK(lane_max<double>(n, -100.0, f) == (n == 0 ? -100.0 : static_cast<double>((n - 1) * (n - 1)) - 7.0));
    CHECK(asked == std::vector<int>(n, 2));
  }
}

TEST_CASE("the largest may stand anywhere, and the least may be the largest") {
  for (std::size_t n = 1; n < 20; ++n) {
    for (std::size_t top = 0; top < n; ++top) {
      CHECK(lane_max<float>(n, -1.0F, [top](std::size_t i) { return i == top ? 2.0F : -3.0F; }) == 2.0F);
    }
    CHECK(lane_max<float>(n, -1.0F, [](std::size_t) { return -3.0F; }) == -1.0F);
  }
}

TEST_CASE("the order of additions is fixed: the same values give the same bits") {
  const auto f = [](std::size_t i) { return 1.0F / static_cast<float>(i + 1); };
  for (const std::size_t n : {std::size_t{7}, std::size_t{8}, std::size_t{1000}}) {
    float copy[1000];
    for (std::size_t i = 0; i < n; ++i) copy[i] = f(i);
    CHECK(lane_sum<float>(n, f) == lane_sum<float>(n, [&](std::size_t i) { return copy[i]; }));
  }
}

}  // namespace
