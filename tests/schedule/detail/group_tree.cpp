// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/detail/group_tree.hpp"

#include <doctest/doctest.h>

#include <set>
#include <utility>
#include <vector>

using namespace meshwise;
using detail::GroupTree;

namespace {

struct Case {
  int ranks;
  std::vector<std::vector<int>> begins;
};

std::vector<Case> cases() {
  return {{1, {}},
          {7, {}},
          {12, {{0, 4, 8}}},
          {17, {{0, 1}}},
          {15, {{0, 7}}},
          {13, {{0, 2, 5, 6, 10, 11}, {0, 5, 10}}},
          {24, {{0, 4, 8, 12, 16, 20}, {0, 12}}},
          {19, {{0, 1, 2, 3, 8, 12, 13}, {0, 3, 12}, {0, 12}}}};
}

}  // namespace

TEST_CASE("nodes contain their children, which contain their ranks") {
  for (const Case& c : cases()) {
    const GroupTree tree(c.begins, c.ranks, false);
    for (int level = 0; level <= tree.top(); ++level) {
      for (int rank = 0; rank < c.ranks; ++rank) {
        const GroupTree::Node node = tree.of(level, rank);
        REQUIRE(node.contains(rank));
        int next = node.first;
        for (int i = 0; i < tree.children(node); ++i) {
          const GroupTree::Node child = tree.child(node, i);
          CHECK(child.first == next);
          CHECK(child.level == level - 1);
          next = child.last;
          CHECK(child.contains(rank) == (i == tree.child_of(node, rank)));
        }
        CHECK(next == node.last);
      }
    }
  }
}

TEST_CASE("the rank in charge of a block in a node is in charge in a child, and runs of it are complete") {
  for (const Case& c : cases()) {
    for (const bool by_home : {false, true}) {
      const GroupTree tree(c.begins, c.ranks, by_home);
      CAPTURE(c.ranks);
      CAPTURE(by_home);
      for (int level = 0; level <= tree.top(); ++level) {
        for (int rank = 0; rank < c.ranks; ++rank) {
          const GroupTree::Node node = tree.of(level, rank);
          std::set<int> mine;
          for (int block = 0; block < c.ranks; ++block) {
            const GroupTree::Charge charge = tree.in_charge(node, block);
            REQUIRE(node.contains(charge.rank));
            REQUIRE(charge.end > block);
            const GroupTree::Cut cut = tree.cut(node, block);
            CHECK(tree.in_charge(tree.child(node, cut.child), block).rank == charge.rank);
            for (int same = block; same < charge.end; ++same) CHECK(tree.in_charge(node, same).rank == charge.rank);
            if (charge.rank == rank) mine.insert(block);
          }
          std::set<int> found;
          tree.each_run(tree.charge_of(rank, level), [&](int block, int end) {
            for (; block < end; ++block) CHECK(found.insert(block).second);
          });
          CHECK(found == mine);
        }
      }
    }
  }
}

TEST_CASE("by home, rank b is in charge of block b at last") {
  for (const Case& c : cases()) {
    const GroupTree tree(c.begins, c.ranks, true);
    for (int block = 0; block < c.ranks; ++block) {
      for (int level = 0; level <= tree.top(); ++level) {
        CHECK(tree.in_charge(tree.of(level, block), block).rank == block);
      }
    }
  }
}

TEST_CASE("by position, even groups are in charge of one block for each rank, and of runs before that") {
  const std::vector<std::vector<int>> begins = {{0, 4, 8, 12, 16, 20}, {0, 12}};
  const GroupTree tree(begins, 24, false);
  for (int rank = 0; rank < 24; ++rank) {
    for (const auto& [level, length] : {std::pair{0, 6}, std::pair{1, 2}, std::pair{2, 1}}) {
      int runs = 0;
      int blocks = 0;
      tree.each_run(tree.charge_of(rank, level), [&, last = -1](int block, int end) mutable {
        runs += block != last;
        last = end;
        blocks += end - block;
      });
      CHECK(runs == 1);
      CHECK(blocks == length);
    }
  }
}

TEST_CASE("the next block of a claim is the first one that meets it") {
  for (const Case& c : cases()) {
    for (const bool by_home : {false, true}) {
      const GroupTree tree(c.begins, c.ranks, by_home);
      for (int level = 0; level <= tree.top(); ++level) {
        const GroupTree::Node node = tree.of(level, c.ranks / 2);
        const int n = tree.children(node);
        for (int low = 0; low < n; ++low) {
          for (int high = low + 1; high <= n; ++high) {
            for (int block = 0; block < c.ranks; ++block) {
              int wanted = block;
              while (wanted < c.ranks && (tree.cut(node, wanted).child < low || tree.cut(node, wanted).child >= high)) {
                ++wanted;
              }
              const int next = tree.next(GroupTree::Claim{node, low, high}, block);
              CHECK((next < c.ranks ? next : c.ranks) == wanted);
            }
          }
        }
      }
    }
  }
}
