// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/redistribution.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "dice.hpp"
#include "meshwise/core/split.hpp"

using namespace meshwise;

namespace {

using Counts = std::vector<std::size_t>;

Counts random_counts(test::Dice& dice, int ranks, std::size_t elements) {
  Counts counts(static_cast<std::size_t>(ranks), 0);
  for (std::size_t rank = 0; rank + 1 < counts.size(); ++rank) {
    const std::size_t part =
        dice.roll(3) == 0 ? 0 : static_cast<std::size_t>(dice.roll(static_cast<int>(elements) + 1));
    counts[rank] = part;
    elements -= part;
  }
  counts.back() = elements;
  for (std::size_t i = counts.size(); i > 1; --i) {
    std::swap(counts[i - 1], counts[static_cast<std::size_t>(dice.roll(static_cast<int>(i)))]);
  }
  return counts;
}

/// Brings element numbers from one split to the other as the routes say, and looks whether they are the other split.
bool delivers(const Redistribution& made, const Counts& before, const Counts& after) {
  const std::size_t total = std::accumulate(before.begin(), before.end(), std::size_t{0});
  std::vector<std::vector<std::uint64_t>> contents(made.sizes.size());  // of blocks
  std::uint64_t next = 0;
  for (std::size_t rank = 0; rank < before.size(); ++rank) {
    std::size_t offset = 0;
    for (const int block : made.routes.held[rank]) {
      for (std::size_t i = 0; i < made.sizes[static_cast<std::size_t>(block)]; ++i) {
        contents[static_cast<std::size_t>(block)].push_back(next + offset++);
      }
    }
    if (offset != before[rank]) return false;
    next += offset;
  }
  std::uint64_t expected = 0;
  for (std::size_t rank = 0; rank < after.size(); ++rank) {
    std::size_t got = 0;
    for (const int block : made.routes.wanted[rank]) {
      for (const std::uint64_t element : contents[static_cast<std::size_t>(block)]) {
        if (element != expected++) return false;
        ++got;
      }
    }
    if (got != after[rank]) return false;
  }
  return expected == total;
}

std::string what_of(const Counts& before, const Counts& after) {
  try {
    routes_between(before, after);
  } catch (const Error& error) {
    CHECK(error.code() == Code::invalid_argument);
    return error.what();
  }
  return "";
}

static_assert(routes_between({}, {}).sizes.empty());
static_assert(routes_between({0, 0}, {0, 0}).routes.blocks == 0);
static_assert(routes_between({4, 4}, {4, 4}).routes.held == routes_between({4, 4}, {4, 4}).routes.wanted);

}  // namespace

TEST_CASE("routes bring any contiguous split to any other") {
  test::Dice dice{5};
  for (int trial = 0; trial < 600; ++trial) {
    const int ranks = 1 + dice.roll(9);
    const int sizes[] = {0, 1, 2, 3, 5, 7, 8, 64, 1000};
    const auto elements = static_cast<std::size_t>(sizes[dice.roll(9)]);
    const Counts before = random_counts(dice, ranks, elements);
    const Counts after = random_counts(dice, ranks, elements);
    const Redistribution made = routes_between(before, after);
    CAPTURE(trial);
    CHECK(made.routes.valid());
    CHECK(made.routes.ranks() == ranks);
    CHECK(made.routes.blocks == static_cast<int>(made.sizes.size()));
    CHECK(made.routes.blocks <= 2 * ranks - 1);
    for (const std::size_t size : made.sizes) CHECK(size > 0);
    for (const auto& holders : made.routes.holders) CHECK(holders.size() == 1);
    for (const auto& takers : made.routes.takers) CHECK(takers.size() == 1);
    CHECK(delivers(made, before, after));
    CHECK(routes_between(after, before).sizes == made.sizes);
  }
}

TEST_CASE("from one split rule to another, each overlap of two parts is one block") {
  for (std::size_t ranks = 1; ranks <= 9; ++ranks) {
    for (const std::size_t elements : {0U, 1U, 5U, 8U, 1000U, 65537U}) {
      Counts even;
      Counts chunks;  // of ceil(elements / ranks), while they last
      const std::size_t chunk = (elements + ranks - 1) / ranks;
      std::size_t left = elements;
      for (std::size_t k = 0; k < ranks; ++k) {
        even.push_back(split(elements, ranks, k).size);
        chunks.push_back(left < chunk ? left : chunk);
        left -= chunks.back();
      }
      const Redistribution made = routes_between(even, chunks);
      CHECK(delivers(made, even, chunks));
      const Redistribution same = routes_between(even, even);
      CHECK(same.routes.held == same.routes.wanted);
    }
  }
}

TEST_CASE("sizes have 64 bits") {
  constexpr std::size_t half = std::size_t{1} << 63;
  const Redistribution made = routes_between({half, 0, half - 1}, {1, half - 2, half});
  CHECK(made.sizes == Counts{1, half - 2, 1, half - 1});
  CHECK(made.routes.held == std::vector<std::vector<int>>{{0, 1, 2}, {}, {3}});
  CHECK(made.routes.wanted == std::vector<std::vector<int>>{{0}, {1}, {2, 3}});
}

TEST_CASE("splits that are not of one vector are errors that name both sides") {
  CHECK(what_of({1, 2}, {3}).find("each of 2 ranks, found 1 counts") != std::string::npos);
  CHECK(what_of({1, 2}, {3, 1}).find("expected 3 elements after as before, found 4 elements") != std::string::npos);
  const std::size_t half = std::size_t{1} << 63;
  CHECK(what_of({half, half}, {half, half}).find("fits 64 bits") != std::string::npos);
}
