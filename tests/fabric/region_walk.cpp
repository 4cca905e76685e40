// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/region_walk.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

using namespace meshwise;
using detail::lane_part;
using detail::RegionWalk;

TEST_CASE("lanes cover a block once, in order, cut at whole lines") {
  for (const std::size_t unit : {1U, 2U, 4U, 8U, 12U, 16U, 24U, 64U, 96U, 7U}) {
    for (const std::size_t size : {0U, 1U, 5U, 64U, 1000U, 65537U}) {
      for (int lanes = 1; lanes <= 7; ++lanes) {
        std::size_t at = 0;
        for (int lane = 0; lane < lanes; ++lane) {
          const Range part = lane_part(size, unit, lane, lanes);
          CHECK(part.begin == at);
          CHECK((part.begin == size || part.begin * unit % 64 == 0));
          at = part.end();
        }
        CHECK(at == size);
      }
    }
  }
  // Balanced to one line.
  CHECK(lane_part(1024, 4, 0, 4).size == 256);
  CHECK(lane_part(std::size_t{1} << 60, 8, 999, 1000).size > 0);
}

TEST_CASE("a walk begins and ends anywhere in a region") {
  std::vector<std::byte> memory(400);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i);
  for (const Region& region : {Region{3, 24, 0, 1}, Region{1, 4, 7, 6}, Region{2, 6, 6, 4}, Region{5, 1, 3, 24}}) {
    std::vector<std::byte> all;
    for (std::size_t i = 0; i < 24; ++i) {
      for (std::size_t b = 0; b < 2; ++b) {
        all.push_back(memory[(region.offset + i / region.run * region.stride + i % region.run) * 2 + b]);
      }
    }
    for (std::size_t begin = 0; begin < 24; ++begin) {
      for (std::size_t size = 1; begin + size <= 24; ++size) {
        const RegionWalk walk = RegionWalk::along(memory.data(), region, 2, Range{begin, size});
        std::vector<std::byte> packed(2 * size);
        walk.copy(packed.data(), packed.size(), true);
        CHECK(packed == std::vector<std::byte>(all.begin() + static_cast<std::ptrdiff_t>(2 * begin),
                                               all.begin() + static_cast<std::ptrdiff_t>(2 * (begin + size))));
        std::vector<std::byte> back(400);
        RegionWalk::along(back.data(), region, 2, Range{begin, size}).copy(packed.data(), packed.size(), false);
        std::vector<std::byte> again(2 * size);
        RegionWalk::along(back.data(), region, 2, Range{begin, size}).copy(again.data(), again.size(), true);
        CHECK(again == packed);
      }
    }
  }
}
