// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/ring.hpp"

#include <doctest/doctest.h>

#include "generator_laws.hpp"

using namespace meshwise;

namespace {

constexpr bool proven(Operation operation, bool in_place, int ranks, int root = 0) {
  return verify(materialise<Ring>(Shape{operation, ranks, root, in_place})).ok();
}

static_assert(proven(Operation::all_reduce, false, 1) && proven(Operation::all_reduce, true, 1));
static_assert(proven(Operation::all_reduce, false, 2) && proven(Operation::all_reduce, true, 3));
static_assert(proven(Operation::all_reduce, false, 8));
static_assert(proven(Operation::all_reduce, true, 8));
static_assert(proven(Operation::reduce_scatter, false, 8));
static_assert(proven(Operation::reduce_scatter, true, 8));
static_assert(proven(Operation::all_gather, false, 8));
static_assert(proven(Operation::all_gather, true, 8));
static_assert(proven(Operation::broadcast, false, 8, 5));
static_assert(proven(Operation::broadcast, true, 8, 5));
static_assert(proven(Operation::all_to_all, false, 8));
static_assert(proven(Operation::reduce, false, 8, 5) && proven(Operation::reduce, true, 7, 0));
static_assert(proven(Operation::inclusive_scan, false, 7) && proven(Operation::inclusive_scan, true, 7));
static_assert(proven(Operation::exclusive_scan, false, 7) && proven(Operation::exclusive_scan, true, 7));
static_assert(!Ring::supports(Shape{Operation::gather, 4, 0, false}));
static_assert(!Ring::supports(Shape{Operation::scatter, 4, 0, false}));

}  // namespace

TEST_CASE("ring schedules are right and move what the formulas say") {
  for (int p = 1; p <= 33; ++p) {
    const std::int64_t n = p - 1;
    for (const Shape& shape : test::sampled_shapes(p)) {
      if (!Ring::supports(shape)) continue;
      CAPTURE(test::describe(shape));
      const Verdict verdict = verify(materialise<Ring>(shape));
      REQUIRE_MESSAGE(verdict.ok(), text(verdict.fault));
      const Operation operation = shape.operation;
      const bool scan = operation == Operation::inclusive_scan || operation == Operation::exclusive_scan;
      const bool chain = scan || operation == Operation::broadcast || operation == Operation::reduce;
      const bool last = operation == Operation::reduce && shape.root == p - 1;
      CHECK(verdict.left_fold_in_rank_order == (p == 1 || scan || last || !combines(operation)));
      CHECK(verdict.canonical == (p == 1 || scan || (last && p == 2) || !combines(operation)));
      CHECK(verdict.identical_on_all_ranks);
      const std::int64_t twice = operation == Operation::all_reduce ? 2 : 1;
      const Count moved{twice * p * n, chain ? (p > 1 ? p : 0) : twice * n};
      const bool pushes = operation == Operation::exclusive_scan;
      CHECK((pushes ? verdict.written : verdict.read) == moved);
      CHECK((pushes ? verdict.read : verdict.written) == Count{0, 0});
      CHECK(verdict.messages == moved.total);
      const bool late = pushes && shape.in_place && p > 2;
      if (p > 1) {
        CHECK(verdict.rounds == (operation == Operation::all_to_all ? p
                                 : chain || twice == 2              ? 2 * n + (late ? 1 : 0)
                                                                    : n));
      }
      CHECK(test::scratch_used(Ring{}, shape) == Ring::scratch_slots(shape));
    }
  }
}

TEST_CASE("ring moves stay between neighbours, except in all_to_all") {
  for (int p = 2; p <= 9; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      if (!Ring::supports(shape) || shape.operation == Operation::all_to_all) continue;
      CAPTURE(test::describe(shape));
      for (const Round& round : materialise<Ring>(shape).rounds) {
        for (const Move& move : round) {
          for (const int rank : test::touched(move)) {
            const int distance = shape.operation == Operation::exclusive_scan ? 1 : p - 1;
            CHECK(rank == (move.by + distance) % p);
          }
        }
      }
    }
  }
}

TEST_CASE("rings name their partners exactly, and do not look at whether a root is in place") {
  for (int p = 1; p <= 9; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      if (Ring::supports(shape)) CHECK(test::check_partners(Ring{}, shape) == 0);
    }
    test::check_same_in_place(Ring{}, Operation::reduce, p);
  }
}

TEST_CASE("rounds that a ring calls alike move the same number of blocks over the same links") {
  for (int p = 1; p <= 9; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      if (!Ring::supports(shape)) continue;
      CAPTURE(test::describe(shape));
      using Load = std::vector<std::pair<std::vector<int>, int>>;
      const auto load = [&](int round) {
        Load result;
        for (int rank = 0; rank < p; ++rank) {
          std::pair<std::vector<int>, int> mine{{}, 0};
          for (const Move& move : Ring::by(shape, rank, round)) {
            for (const auto* pieces : {&move.from, &move.to}) {
              for (const Piece& piece : *pieces) {
                mine.first.push_back(piece.rank);
                mine.second += piece.count;
              }
            }
          }
          result.push_back(mine);
        }
        return result;
      };
      for (int k = 0; k < Ring::rounds(shape);) {
        const int alike = Ring::alike(shape, k);
        REQUIRE(alike >= 1);
        REQUIRE(k + alike <= Ring::rounds(shape));
        for (int i = 1; i < alike; ++i) CHECK(load(k + i) == load(k));
        for (int i = 1; i < alike; ++i) CHECK(Ring::alike(shape, k + i) == alike - i);
        k += alike;
      }
    }
  }
}

TEST_CASE("a rank of very many asks for its own moves only") {
  const int p = 100000;
  for (const Operation operation : {Operation::all_gather, Operation::reduce, Operation::exclusive_scan}) {
    const Shape shape{operation, p, rooted(operation) ? 99990 : 0, true};
    test::check_partners_of(Ring{}, shape, {1, 99999});
  }
}

TEST_CASE("ring schedules of many ranks") {
  for (const int p : {64, 100, 200}) {
    CHECK(verify(materialise<Ring>(Shape{Operation::all_reduce, p, 0, true})).ok());
    CHECK(verify(materialise<Ring>(Shape{Operation::reduce_scatter, p, 0, false})).ok());
    CHECK(verify(materialise<Ring>(Shape{Operation::broadcast, p, p / 3, false})).ok());
    CHECK(verify(materialise<Ring>(Shape{Operation::reduce, p, p / 3, true})).ok());
    CHECK(verify(materialise<Ring>(Shape{Operation::exclusive_scan, p, 0, true})).canonical);
  }
  CHECK(verify(materialise<Ring>(Shape{Operation::all_gather, 600, 0, true})).ok());
}
