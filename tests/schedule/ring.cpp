// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/ring.hpp"

#include <doctest/doctest.h>

#include "all_shapes.hpp"
#include "meshwise/schedule/verify.hpp"

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

}  // namespace

TEST_CASE("ring schedules are right and move what the formulas say") {
  for (int p = 1; p <= 33; ++p) {
    const std::int64_t n = p - 1;
    for (const Shape& shape : test::all_shapes(p)) {
      CAPTURE(test::describe(shape));
      const Verdict verdict = verify(materialise<Ring>(shape));
      REQUIRE_MESSAGE(verdict.ok(), text(verdict.fault));
      CHECK(verdict.left_fold_in_rank_order == (p == 1 || !combines(shape.operation)));
      CHECK(verdict.written == Count{0, 0});
      const bool both = shape.operation == Operation::all_reduce;
      CHECK(verdict.read.total == (both ? 2 : 1) * p * n);
      CHECK(verdict.messages == verdict.read.total);
      if (shape.operation == Operation::broadcast) {
        CHECK(verdict.read.most == (p > 1 ? p : 0));
      } else {
        CHECK(verdict.read.most == (both ? 2 : 1) * n);
      }
      if (p > 1) {
        const bool twice = both || shape.operation == Operation::broadcast;
        CHECK(verdict.rounds == (shape.operation == Operation::all_to_all ? p : twice ? 2 * n : n));
      }
    }
  }
}

TEST_CASE("ring moves stay between neighbours, except in all_to_all") {
  for (int p = 2; p <= 9; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      if (shape.operation == Operation::all_to_all) continue;
      CAPTURE(test::describe(shape));
      for (const Round& round : materialise<Ring>(shape).rounds) {
        for (const Move& move : round) {
          for (const Piece& piece : move.to) CHECK(piece.rank == move.by);
          for (const Piece& piece : move.from) {
            CHECK((piece.rank == move.by || piece.rank == (move.by + p - 1) % p));
          }
        }
      }
    }
  }
}

TEST_CASE("ring schedules of many ranks") {
  for (const int p : {64, 100, 200}) {
    CHECK(verify(materialise<Ring>(Shape{Operation::all_reduce, p, 0, true})).ok());
    CHECK(verify(materialise<Ring>(Shape{Operation::reduce_scatter, p, 0, false})).ok());
    CHECK(verify(materialise<Ring>(Shape{Operation::broadcast, p, p / 3, false})).ok());
  }
}
