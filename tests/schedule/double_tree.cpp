// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/double_tree.hpp"

#include <doctest/doctest.h>

#include <bit>

#include "../support/sanitized.hpp"
#include "generator_laws.hpp"

using namespace meshwise;

namespace {

constexpr bool proven(Operation operation, bool in_place, int ranks, int root = 0) {
  return verify(materialise<DoubleTree>(Shape{operation, ranks, root, in_place})).ok();
}

static_assert(proven(Operation::all_reduce, false, 7) && proven(Operation::all_reduce, true, 8));
static_assert(proven(Operation::broadcast, false, 7, 3) && proven(Operation::broadcast, true, 8, 5));
static_assert(proven(Operation::reduce, false, 7, 3) && proven(Operation::reduce, true, 8, 5));

int log_floor(int n) { return static_cast<int>(std::bit_width(static_cast<unsigned>(n))) - 1; }

void check_counts(const Shape& shape, const Verdict& verdict) {
  const std::int64_t p = shape.ranks;
  CHECK(verdict.written == Count{0, 0});
  if (p == 1) return;
  CHECK(verdict.read.total == (shape.operation == Operation::all_reduce ? 2 : 1) * p * (p - 1));
  switch (shape.operation) {
    case Operation::all_reduce:
      CHECK(verdict.rounds == 2 * log_floor(shape.ranks + 1));
      CHECK(verdict.read.most <= 2 * p + 1);
      break;
    case Operation::broadcast:
      CHECK(verdict.rounds == 1 + log_floor(shape.ranks - 1));
      CHECK(verdict.read.most == p);
      break;
    default:
      CHECK(verdict.rounds == (p == 2 ? 1 : 1 + log_floor(shape.ranks)));
      CHECK(verdict.read.most <= p + 1);
      break;
  }
}

}  // namespace

TEST_CASE("in-order trees are binary search trees of least height") {
  for (const int lowest : {1, 2}) {
    for (int highest = lowest; highest <= 130; ++highest) {
      const detail::InorderTree tree{lowest, highest};
      int reached = 0;
      int height = 0;
      for (int at = lowest; at <= highest; ++at) {
        const int left = tree.left(at);
        const int right = tree.right(at);
        if (left != 0) CHECK((left < at && left >= lowest && tree.parent(left) == at));
        if (right != 0) CHECK((right > at && right <= highest && tree.parent(right) == at));
        reached += (left != 0) + (right != 0);
        height = std::max(height, tree.depth(at));
        if (at % 2 == 1) CHECK(left + right == 0);
      }
      CHECK(reached == highest - lowest);
      CHECK(tree.parent(tree.root()) == 0);
      CHECK(tree.height() == height);
    }
  }
}

TEST_CASE("double tree schedules are right and move what the formulas say") {
  for (int p = 1; p <= 33; ++p) {
    for (const Shape& shape : test::sampled_shapes(p)) {
      if (!DoubleTree::supports(shape)) continue;
      CAPTURE(test::describe(shape));
      const Verdict verdict = verify(materialise<DoubleTree>(shape));
      REQUIRE_MESSAGE(verdict.ok(), text(verdict.fault));
      CHECK(verdict.identical_on_all_ranks);
      check_counts(shape, verdict);
    }
  }
  for (const int p : {64, 100, 255, 257, 1000, 1024}) {
    if (p > building::most_ranks) continue;
    for (const Operation operation : {Operation::all_reduce, Operation::broadcast, Operation::reduce}) {
      const Shape shape{operation, p, rooted(operation) ? p / 3 : 0, true};
      CAPTURE(test::describe(shape));
      const Verdict verdict = verify(materialise<DoubleTree>(shape));
      REQUIRE_MESSAGE(verdict.ok(), text(verdict.fault));
      CHECK(verdict.identical_on_all_ranks);
      check_counts(shape, verdict);
    }
  }
}

TEST_CASE("a rank combines or forwards in one of the two trees only") {
  for (int p = 2; p <= 70; ++p) {
    for (const Operation operation : {Operation::all_reduce, Operation::broadcast, Operation::reduce}) {
      const Shape shape{operation, p, rooted(operation) ? p / 2 : 0, true};
      CAPTURE(test::describe(shape));
      // Who is read from on the way down, or combines on the way up: by the first block of the tree.
      std::vector<std::set<int>> inner(test::at(p));
      for (const Round& round : materialise<DoubleTree>(shape).rounds) {
        for (const Move& move : round) {
          const int rank = move.from.size() > 1 ? move.by : move.from[0].rank;
          if (!rooted(operation) || rank != shape.root) inner[test::at(rank)].insert(move.block);
        }
      }
      for (const std::set<int>& trees : inner) CHECK(trees.size() <= 1);
    }
  }
}

TEST_CASE("double tree sums keep the ranks in order and are the same everywhere") {
  for (const int p : {1, 2, 3, 4, 7, 8, 15, 16, 31, 33}) {
    CHECK(verify(materialise<DoubleTree>(Shape{Operation::all_reduce, p, 0, false})).in_rank_order);
    CHECK(verify(materialise<DoubleTree>(Shape{Operation::reduce, p, 0, false})).in_rank_order);
  }
}

TEST_CASE("double tree partners name whoever touches a buffer, and nobody else") {
  for (int p = 1; p <= 18; ++p) {
    for (const Shape& shape : test::sampled_shapes(p)) {
      if (DoubleTree::supports(shape)) CHECK(test::check_partners(DoubleTree{}, shape) == 0);
    }
  }
  for (const Operation operation : {Operation::all_reduce, Operation::broadcast, Operation::reduce}) {
    const Shape shape{operation, 100000, rooted(operation) ? 7 : 0, true};
    test::check_partners_of(DoubleTree{}, shape, {0, 6, 7, 8, 23, 40000, 65535, 65536, 99999});
  }
}

TEST_CASE("double tree moves of a reduce are the same in and out of place") {
  for (int p = 1; p <= 17; ++p) test::check_same_in_place(DoubleTree{}, Operation::reduce, p);
}

TEST_CASE("double tree plans and messages run") { test::check_plans(DoubleTree{}, {1, 2, 3, 5, 8, 9}); }
