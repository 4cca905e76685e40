// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/positions.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace {

using namespace meshwise;
using Numbers = std::vector<std::size_t>;

constexpr Positions first_numbers(std::size_t n) { return Range{0, n}; }

static_assert(floor_part(first_numbers(7), 3, 1).range() == Range{2, 2});
static_assert(zigzag_part(first_numbers(8), 2, 0).at(3) == 7 && !zigzag_part(first_numbers(8), 2, 0).is_range());
static_assert(zigzag_part(first_numbers(8), 2, 1).range() == Range{2, 4});
static_assert(stripe_part(first_numbers(7), 3, 1).progressions()[0] == Progression{1, 2, 3});
static_assert(chunk_part(first_numbers(7), 3, 2).range() == Range{6, 1});

Numbers listed(const Positions& p) {
  Numbers result;
  for (const Progression& one : p.progressions()) {
    for (std::size_t i = 0; i < one.count; ++i) result.push_back(one.at(i));
  }
  return result;
}

/// The rules by their definition, on lists of numbers.
Numbers middle(const Numbers& all, std::size_t begin, std::size_t end) {
  return {all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(end)};
}
Numbers defined(int rule, const Numbers& all, std::size_t n, std::size_t k, const Numbers& counts) {
  const std::size_t m = all.size();
  Numbers result;
  switch (rule) {
    case 0: return middle(all, k * m / n, (k + 1) * m / n);
    case 1: {
      const std::size_t each = (m + n - 1) / n;
      return middle(all, std::min(m, k * each), std::min(m, (k + 1) * each));
    }
    case 2:
      for (const std::size_t part : {k, 2 * n - 1 - k}) {
        for (const std::size_t x : middle(all, part * m / (2 * n), (part + 1) * m / (2 * n))) result.push_back(x);
      }
      return result;
    case 3:
      for (std::size_t i = k; i < m; i += n) result.push_back(all[i]);
      return result;
    default: {
      std::size_t begin = 0;
      for (std::size_t i = 0; i < k; ++i) begin += counts[i];
      return middle(all, begin, begin + counts[k]);
    }
  }
}
Positions computed(int rule, const Positions& all, std::size_t n, std::size_t k, const Numbers& counts) {
  switch (rule) {
    case 0: return floor_part(all, n, k);
    case 1: return chunk_part(all, n, k);
    case 2: return zigzag_part(all, n, k);
    case 3: return stripe_part(all, n, k);
    default: return counted_part(all, counts, k);
  }
}
/// Counts of n parts that add up to m, some of them 0.
Numbers counts_of(std::size_t m, std::size_t n) {
  Numbers counts(n, 0);
  std::size_t left = m;
  for (std::size_t k = 0; k + 1 < n; ++k) {
    counts[k] = (k * 5 + m) % 3 == 0 ? 0 : left / 2;
    left -= counts[k];
  }
  counts[n - 1] = left;
  return counts;
}

struct Held {
  Positions positions;
  Numbers numbers;
};

/// Every part of every rule over 1 to most ranks.
std::vector<Held> parts_of(const Held& whole, std::size_t most) {
  std::vector<Held> result;
  for (int rule = 0; rule < 5; ++rule) {
    for (std::size_t n = 1; n <= most; ++n) {
      const Numbers counts = counts_of(whole.numbers.size(), n);
      std::size_t sum = 0;
      for (std::size_t k = 0; k < n; ++k) {
        result.push_back({computed(rule, whole.positions, n, k, counts), defined(rule, whole.numbers, n, k, counts)});
        sum += result.back().positions.size();
      }
      REQUIRE(sum == whole.numbers.size());
    }
  }
  return result;
}

void check(const Held& part) {
  const Positions& p = part.positions;
  const Numbers& numbers = part.numbers;
  REQUIRE(listed(p) == numbers);
  REQUIRE(p.size() == numbers.size());
  REQUIRE(p.empty() == numbers.empty());
  REQUIRE(std::is_sorted(numbers.begin(), numbers.end()));
  bool dense = true;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    REQUIRE(p.at(i) == numbers[i]);
    dense = dense && numbers[i] == numbers[0] + i;
  }
  REQUIRE(p.is_range() == dense);
  if (dense) REQUIRE(p.range() == Range{numbers.empty() ? 0 : numbers[0], numbers.size()});
  for (std::size_t x = 0; x < 20; ++x) {
    REQUIRE(p.find(x) == static_cast<std::size_t>(std::find(numbers.begin(), numbers.end(), x) - numbers.begin()));
  }
}

std::vector<CommonPlaces> expanded(const detail::List<CommonPlaces>& places) {
  std::vector<CommonPlaces> result;
  for (const CommonPlaces& c : places) {
    for (std::size_t i = 0; i < c.count; ++i) result.push_back({c.a + i * c.step_a, c.b + i * c.step_b, 1, 1, 1});
  }
  return result;
}
std::vector<CommonPlaces> common_by_search(const Numbers& a, const Numbers& b) {
  std::vector<CommonPlaces> result;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto found = std::lower_bound(b.begin(), b.end(), a[i]);
    if (found != b.end() && *found == a[i]) result.push_back({i, static_cast<std::size_t>(found - b.begin()), 1, 1, 1});
  }
  return result;
}

TEST_CASE("all rules, two of them nested, against their definitions") {
  for (std::size_t n = 0; n <= 17; ++n) {
    Held whole{first_numbers(n), {}};
    for (std::size_t i = 0; i < n; ++i) whole.numbers.push_back(i);
    check(whole);
    for (const Held& part : parts_of(whole, 5)) {
      check(part);
      for (const Held& nested : parts_of(part, n % 4 == 1 ? 3 : 2)) check(nested);
    }
  }
}

TEST_CASE("a split over one rank changes nothing") {
  for (std::size_t n = 0; n <= 40; ++n) {
    for (int rule = 0; rule < 5; ++rule) REQUIRE(computed(rule, first_numbers(n), 1, 0, {n}) == first_numbers(n));
  }
}

TEST_CASE("what two lists share, all pairs of parts") {
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{5}, std::size_t{12}, std::size_t{17}}) {
    Held whole{first_numbers(n), {}};
    for (std::size_t i = 0; i < n; ++i) whole.numbers.push_back(i);
    std::vector<Held> all = parts_of(whole, 3);
    for (const Held& nested : parts_of(parts_of(whole, 3)[7], 3)) all.push_back(nested);
    for (const Held& nested : parts_of(parts_of(whole, 3)[14], 3)) all.push_back(nested);
    for (const Held& a : all) {
      for (const Held& b : all) {
        REQUIRE(expanded(common(a.positions, b.positions)) == common_by_search(a.numbers, b.numbers));
        REQUIRE((a.positions == b.positions) == (a.numbers == b.numbers));
      }
    }
  }
}

TEST_CASE("what neighbouring steps share is one progression, and dense parts meet in one piece") {
  const Positions all = first_numbers(120);
  const auto one = common(stripe_part(all, 4, 2), stripe_part(all, 6, 4));
  REQUIRE(one == detail::List<CommonPlaces>{{2, 1, 10, 3, 2}});
  REQUIRE(common(stripe_part(all, 4, 1), stripe_part(all, 6, 4)).empty());
  REQUIRE(common(floor_part(all, 3, 1), floor_part(all, 2, 0)) == detail::List<CommonPlaces>{{0, 40, 20, 1, 1}});
  REQUIRE(common(zigzag_part(all, 2, 0), all).size() == 2);
  REQUIRE(common(all, all) == detail::List<CommonPlaces>{{0, 0, 120, 1, 1}});
}

TEST_CASE("more progressions than are kept in place") {
  Positions many;
  Numbers numbers;
  for (std::size_t i = 0; i < 9; ++i) {
    many.append({10 * i, 2 + i % 2, 1});
    for (std::size_t k = 0; k < 2 + i % 2; ++k) numbers.push_back(10 * i + k);
  }
  REQUIRE(listed(many) == numbers);
  REQUIRE(many.progressions().size() == 9);
  const Positions copy = many;
  REQUIRE(copy == many);
  REQUIRE(!copy.is_range());
  for (std::size_t n = 1; n <= 4; ++n) {
    for (std::size_t k = 0; k < n; ++k) {
      for (int rule = 0; rule < 4; ++rule) check({computed(rule, many, n, k, {}), defined(rule, numbers, n, k, {})});
    }
  }
}

TEST_CASE("numbers near the end of 64 bits") {
  const std::size_t huge = ~std::size_t{0} - 3;
  for (std::size_t k = 0; k < 3; ++k) {
    REQUIRE(floor_part(first_numbers(huge), 3, k).range() == split(huge, 3, k));
    REQUIRE(stripe_part(first_numbers(huge), 3, k).size() == (huge - k + 2) / 3);
  }
  REQUIRE(chunk(huge, 7, 6).end() == huge);
  REQUIRE(chunk(huge, 1, 0) == Range{0, huge});
  REQUIRE(common(stripe_part(first_numbers(huge), 3, 1), stripe_part(first_numbers(huge), 5, 1)).size() == 1);
}

}  // namespace
