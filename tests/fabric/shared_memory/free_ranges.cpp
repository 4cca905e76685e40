// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/shared_memory/free_ranges.hpp"

#include <doctest/doctest.h>

#include <random>
#include <vector>

namespace {

using meshwise::detail::FreeRanges;

}  // namespace

TEST_CASE("parts that are taken do not overlap, are aligned, and come back as one") {
  std::mt19937 random(7);
  constexpr std::uint64_t begin = 192, end = 20'000;
  FreeRanges ranges(begin, end);
  std::vector<char> used(end, 0);
  struct Part {
    std::uint64_t at, bytes;
  };
  std::vector<Part> parts;
  const auto free_run = [&](std::uint64_t bytes, std::uint64_t alignment, std::uint64_t phase) {
    for (std::uint64_t at = begin; at + bytes <= end; ++at) {
      if ((at - phase) % alignment != 0) continue;
      std::uint64_t k = 0;
      while (k < bytes && used[at + k] == 0) ++k;
      if (k == bytes) return true;
    }
    return false;
  };
  for (int step = 0; step < 3000; ++step) {
    if (!parts.empty() && random() % 5 < 2) {
      const std::size_t k = random() % parts.size();
      for (std::uint64_t i = 0; i < parts[k].bytes; ++i) used[parts[k].at + i] = 0;
      ranges.put(parts[k].at, parts[k].bytes);
      parts[k] = parts.back();
      parts.pop_back();
      continue;
    }
    const std::uint64_t bytes = 1 + random() % 900, alignment = std::uint64_t{1} << random() % 9;
    const std::uint64_t phase = random() % 3 == 0 ? random() % alignment : 0;
    const std::uint64_t at = ranges.take(bytes, alignment, phase);
    if (at == FreeRanges::none) {
      REQUIRE_FALSE(free_run(bytes, alignment, phase));
      continue;
    }
    REQUIRE(at >= begin);
    REQUIRE(at + bytes <= end);
    REQUIRE((at - phase) % alignment == 0);
    for (std::uint64_t i = 0; i < bytes; ++i) {
      REQUIRE(used[at + i] == 0);
      used[at + i] = 1;
    }
    parts.push_back({at, bytes});
  }
  for (const Part& part : parts) ranges.put(part.at, part.bytes);
  CHECK(ranges.parts() == 1);
  CHECK(ranges.take(end - begin, 1, 0) == begin);
  CHECK(ranges.parts() == 0);
  CHECK(ranges.take(1, 1, 0) == FreeRanges::none);
}

TEST_CASE("the smallest part that fits is taken, and of an empty range nothing") {
  FreeRanges ranges(0, 1000);
  REQUIRE(ranges.take(100, 1, 0) == 0);
  REQUIRE(ranges.take(1, 1, 0) == 100);
  REQUIRE(ranges.take(20, 1, 0) == 101);
  REQUIRE(ranges.take(1, 1, 0) == 121);
  ranges.put(0, 100);
  ranges.put(101, 20);
  CHECK(ranges.parts() == 3);
  CHECK(ranges.take(15, 1, 0) == 101);
  CHECK(ranges.take(50, 1, 0) == 0);
  CHECK(ranges.take(60, 1, 0) == 122);
  CHECK(FreeRanges(5, 5).take(1, 1, 0) == FreeRanges::none);
  CHECK(FreeRanges(5, 3).take(1, 1, 0) == FreeRanges::none);
}
