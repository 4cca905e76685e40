// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/detail/nested_groups.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

using namespace meshwise;
using detail::NestedGroups;

namespace {

using Begins = std::vector<std::vector<int>>;

/// The most children that a group of a level has, by counting.
int most_children(const Begins& begins, int ranks, int level) {
  const auto first_of_groups = [&](int l) {
    if (l < 0) {
      std::vector<int> all;
      for (int rank = 0; rank < ranks; ++rank) all.push_back(rank);
      return all;
    }
    return l < static_cast<int>(begins.size()) ? begins[static_cast<std::size_t>(l)] : std::vector<int>{0};
  };
  int most = 0;
  const std::vector<int> own = first_of_groups(level), below = first_of_groups(level - 1);
  for (std::size_t i = 0; i < own.size(); ++i) {
    int children = 0;
    for (const int child : below) {
      if (child >= own[i] && (i + 1 == own.size() || child < own[i + 1])) ++children;
    }
    most = children > most ? children : most;
  }
  return most;
}

std::string refusal(Begins begins) {
  try {
    static_cast<void>(NestedGroups(std::move(begins), 16));
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("a level takes the rounds of its largest group, the last ranks included") {
  for (const Begins& begins : {Begins{},
                               {{0}},
                               {{0, 4, 8}},
                               {{0, 1}},
                               {{0, 2, 5, 6, 10, 11}, {0, 5, 10}},
                               {{0, 1, 2, 3, 8, 12, 13}, {0, 3, 12}, {0, 12}}}) {
    for (const int widest_direct : {1, 3, 16}) {
      const NestedGroups groups(begins, widest_direct);
      CHECK(groups.top() == static_cast<int>(begins.size()));
      const int fewest = begins.empty() ? 1 : begins[0].back() + 1;
      for (const int ranks : {fewest, fewest + 1, fewest + 20}) {
        for (int level = 0; level <= groups.top(); ++level) {
          const int n = most_children(begins, ranks, level);
          int lg = 0;
          while ((1 << lg) < n) ++lg;
          CHECK(groups.rounds_of(ranks, level) == (n == 1 ? 0 : n <= widest_direct ? 1 : lg));
        }
      }
    }
  }
}

TEST_CASE("equal are the same groups with the same width") {
  CHECK(NestedGroups({{0, 2}}, 4) == NestedGroups({{0, 2}}, 4));
  CHECK_FALSE(NestedGroups({{0, 2}}, 4) == NestedGroups({{0, 2}}, 5));
  CHECK_FALSE(NestedGroups({{0, 2}}, 16) == NestedGroups());
}

TEST_CASE("groups that are none are refused with their level") {
  CHECK(refusal({{}}).find("groups that begin at rank 0") != std::string::npos);
  CHECK(refusal({{1, 2}}).find("level 0 is not so") != std::string::npos);
  CHECK(refusal({{0, 3, 3}}).find("higher and higher") != std::string::npos);
  CHECK(refusal({{0, 2, 4}, {0, 3}}).find("unions of groups of the level below, found level 1") != std::string::npos);
  CHECK(refusal({{0, 2, 4}, {0, 4}}).empty());
}

}  // namespace
