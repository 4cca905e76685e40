// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/selection_table.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>

using namespace meshwise;

namespace {

constexpr std::uint64_t none = SelectionTable::no_end;

SelectionTable table(std::initializer_list<SelectionRule> rules) {
  SelectionTable result;
  for (const SelectionRule& rule : rules) result.rules[result.size++] = rule;
  return result;
}

const SelectionRule ring{Operation::all_reduce, Way::memory, Algorithm::ring, 4, 2, 1024, 1 << 20};

}  // namespace

TEST_CASE("a rule is for its operation, its way and its bytes") {
  const SelectionTable one = table({ring});
  const auto found = [&](Operation operation, Way way, std::uint64_t bytes) {
    return one.find(operation, way, 4, bytes) != nullptr;
  };
  CHECK(found(Operation::all_reduce, Way::memory, 1024));
  CHECK(found(Operation::all_reduce, Way::memory, (1 << 20) - 1));
  CHECK_FALSE(found(Operation::all_reduce, Way::memory, 1023));
  CHECK_FALSE(found(Operation::all_reduce, Way::memory, 1 << 20));
  CHECK_FALSE(found(Operation::reduce, Way::memory, 1024));
  CHECK_FALSE(found(Operation::all_reduce, Way::messages, 1024));
  CHECK_FALSE(found(Operation::all_reduce, Way::foreign, 1024));
  CHECK(SelectionTable().find(Operation::all_reduce, Way::memory, 4, 1024) == nullptr);
}

TEST_CASE("a range without end holds everything from its beginning on") {
  SelectionRule rule = ring;
  rule.to = none;
  const SelectionTable one = table({rule});
  CHECK(one.find(Operation::all_reduce, Way::memory, 4, none) != nullptr);
  CHECK(one.find(Operation::all_reduce, Way::memory, 4, 1) == nullptr);
}

TEST_CASE("groups take the rules of their own size, else of the nearest below, but not below half") {
  SelectionRule eight = ring;
  eight.ranks = 8;
  eight.algorithm = Algorithm::circulant;
  const SelectionTable both = table({eight, ring});
  const int expected[] = {0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 8, 8, 8, 8, 8, 0, 0};
  for (int ranks = 0; ranks < 19; ++ranks) {
    CAPTURE(ranks);
    CHECK(both.group_size(Operation::all_reduce, Way::memory, ranks) == expected[ranks]);
    const SelectionRule* const found = both.find(Operation::all_reduce, Way::memory, ranks, 4096);
    CHECK((found == nullptr ? 0 : found->ranks) == expected[ranks]);
  }
  CHECK(both.group_size(Operation::all_reduce, Way::memory, 2'000'000'000) == 0);
}

TEST_CASE("a size that the rules of the nearest group do not cover is the model's, as what they leave to it") {
  SelectionRule automatic = ring;
  automatic.ranks = 6;
  automatic.algorithm = Algorithm::automatic;
  automatic.lanes = 0;
  const SelectionTable both = table({ring, automatic});
  CHECK(both.find(Operation::all_reduce, Way::memory, 5, 4096) != nullptr);
  CHECK(both.find(Operation::all_reduce, Way::memory, 6, 4096) == nullptr);
  CHECK(both.find(Operation::all_reduce, Way::memory, 7, 4096) == nullptr);
}

TEST_CASE("the set of decided sizes is that of the rules") {
  const SelectionTable one = table({ring});
  const std::uint64_t set = one.decided_sizes(Operation::all_reduce, Way::memory, 5);
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1023}, std::uint64_t{1024},
                                    std::uint64_t{1025}, std::uint64_t{1} << 19, std::uint64_t{1} << 20, none}) {
    CAPTURE(bytes);
    const bool decided = one.find(Operation::all_reduce, Way::memory, 5, bytes) != nullptr;
    CHECK(SelectionTable::has(set, bytes) == decided);
  }
  CHECK(one.decided_sizes(Operation::all_reduce, Way::foreign, 5) == 0);
  CHECK(SelectionTable().decided_sizes(Operation::all_reduce, Way::memory, 4) == 0);
}

TEST_CASE("equal tables have equal signatures, others others") {
  SelectionTable one = table({ring});
  const SelectionTable same = table({ring});
  CHECK(one == same);
  CHECK(one.signature() == same.signature());
  SelectionRule other = ring;
  other.lanes = 3;
  CHECK(one.signature() != table({other}).signature());
  CHECK(one != table({other}));
  CHECK(one.signature() != SelectionTable().signature());
  one.rules[5] = other;  // beyond the size
  CHECK(one == same);
}
