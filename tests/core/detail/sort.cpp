// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/detail/sort.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace meshwise::detail;

namespace {

constexpr bool sorts_in_constant_expressions() {
  List<int> numbers;
  for (int i = 0; i < 100; ++i) numbers.push_back(i * 37 % 101 % 10);
  sort_and_unite(numbers);
  return numbers == List<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
}
static_assert(sorts_in_constant_expressions());

TEST_CASE("sort_stably is std::stable_sort, for every length and for many equal keys") {
  std::minstd_rand dice(3);
  for (std::size_t size = 0; size < 200; ++size) {
    for (const unsigned keys : {1u, 3u, 1000u}) {
      using Item = std::pair<unsigned, std::size_t>;
      std::vector<Item> items(size);
      for (std::size_t i = 0; i < size; ++i) items[i] = {static_cast<unsigned>(dice()) % keys, i};
      std::vector<Item> expected = items;
      const auto before = [](const Item& a, const Item& b) { return a.first < b.first; };
      std::stable_sort(expected.begin(), expected.end(), before);
      sort_stably(items.data(), items.data() + size, before);
      REQUIRE(items == expected);
    }
  }
}

TEST_CASE("sort_stably moves, and the order is the caller's") {
  std::vector<std::string> words{"gather", "reduce", "all_gather", "broadcast", "scan", "reduce"};
  sort_stably(words.data(), words.data() + words.size(), [](const auto& a, const auto& b) { return b < a; });
  REQUIRE(words == std::vector<std::string>{"scan", "reduce", "reduce", "gather", "broadcast", "all_gather"});
}

TEST_CASE("sort_and_unite leaves each number once, ascending") {
  std::minstd_rand dice(5);
  for (std::size_t size = 0; size < 60; ++size) {
    std::vector<int> numbers(size);
    for (int& number : numbers) number = static_cast<int>(dice() % 20);
    std::vector<int> expected = numbers;
    std::sort(expected.begin(), expected.end());
    expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
    sort_and_unite(numbers);
    REQUIRE(numbers == expected);
  }
}

}  // namespace
