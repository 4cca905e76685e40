// SPDX-License-Identifier: Apache-2.0
#include "meshwise/bootstrap/detail/core_shares.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <set>
#include <vector>

using meshwise::detail::allowed_processors;
using meshwise::detail::core_share_of;
using meshwise::detail::List;
using meshwise::detail::Processor;

namespace {

std::vector<int> share(const List<Processor>& processors, int ranks, int rank) {
  const List<int> mine = core_share_of(processors, ranks, rank);
  return {mine.begin(), mine.end()};
}

/// Two packages of four cores of two processors, numbered as such machines do: 0-7 the first ones of every core.
List<Processor> large() {
  List<Processor> all;
  for (int number = 0; number < 16; ++number) all.push_back({number / 4 % 2, number % 4, number});
  return all;
}

}  // namespace

TEST_CASE("whole cores while there are enough") {
  CHECK(share(large(), 1, 0).size() == 16);
  CHECK(share(large(), 2, 0) == std::vector<int>{0, 8, 1, 9, 2, 10, 3, 11});    // the first package
  CHECK(share(large(), 2, 1) == std::vector<int>{4, 12, 5, 13, 6, 14, 7, 15});  // the second
  CHECK(share(large(), 8, 0) == std::vector<int>{0, 8});
  CHECK(share(large(), 8, 5) == std::vector<int>{5, 13});
  CHECK(share(large(), 3, 0).size() == 4);  // 2 of 8 cores
  CHECK(share(large(), 3, 1).size() == 6);
  CHECK(share(large(), 3, 2).size() == 6);
}

TEST_CASE("single processors, then shared ones") {
  CHECK(share(large(), 16, 0) == std::vector<int>{0});
  CHECK(share(large(), 16, 1) == std::vector<int>{8});
  CHECK(share(large(), 16, 15) == std::vector<int>{15});
  CHECK(share(large(), 32, 0) == std::vector<int>{0});
  CHECK(share(large(), 32, 1) == std::vector<int>{0});
  CHECK(share(large(), 32, 31) == std::vector<int>{15});
  CHECK(share({}, 3, 1).empty());
}

TEST_CASE("every processor is dealt once, or to one more rank than another") {
  for (int ranks = 1; ranks <= 40; ++ranks) {
    std::vector<int> users(16, 0);
    for (int rank = 0; rank < ranks; ++rank) {
      const std::vector<int> mine = share(large(), ranks, rank);
      CHECK(!mine.empty());
      for (const int one : mine) ++users[static_cast<std::size_t>(one)];
    }
    for (const int one : users) {
      CHECK(one >= ranks / 16);
      CHECK(one <= (ranks + 15) / 16);
      CHECK(one > 0);
    }
  }
}

TEST_CASE("this machine has processors, each once") {
  const List<Processor> all = allowed_processors();
  REQUIRE(!all.empty());
  std::set<int> numbers;
  for (const Processor& one : all) CHECK(numbers.insert(one.number).second);
}
