// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/pairwise.hpp"

#include <doctest/doctest.h>

#include <bit>

#include "generator_laws.hpp"

using namespace meshwise;

namespace {

constexpr bool proven(Operation operation, bool in_place, int ranks) {
  return verify(materialise<Pairwise>(Shape{operation, ranks, 0, in_place})).ok();
}

static_assert(proven(Operation::reduce_scatter, false, 1) && proven(Operation::reduce_scatter, true, 1));
static_assert(proven(Operation::reduce_scatter, false, 7) && proven(Operation::reduce_scatter, true, 8));
static_assert(proven(Operation::all_to_all, false, 7) && proven(Operation::all_to_all, false, 8));
static_assert(proven(Operation::all_gather, false, 7) && proven(Operation::all_gather, true, 8));
static_assert(!Pairwise::supports(Shape{Operation::all_reduce, 8, 0, false}));

void counts(const Shape& shape, const Verdict& verdict) {
  const std::int64_t p = shape.ranks;
  CHECK(verdict.written == Count{0, 0});
  CHECK(verdict.read == Count{p * (p - 1), p - 1});
  CHECK(verdict.messages == p * (p - 1));
  if (p > 1) CHECK(verdict.rounds == p - 1);
  CHECK(verdict.left_fold_in_rank_order == (p < 3 || !combines(shape.operation)));
}

}  // namespace

TEST_CASE("pairwise schedules are right and move what the formulas say") {
  for (int p = 1; p <= 33; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      if (!Pairwise::supports(shape)) continue;
      CAPTURE(test::describe(shape));
      const Verdict verdict = verify(materialise<Pairwise>(shape));
      REQUIRE_MESSAGE(verdict.ok(), text(verdict.fault));
      counts(shape, verdict);
    }
  }
  for (const int p : {64, 100, 257}) {
    for (const Operation operation : {Operation::reduce_scatter, Operation::all_to_all, Operation::all_gather}) {
      const Shape shape{operation, p, 0, false};
      CAPTURE(test::describe(shape));
      const Verdict verdict = verify(materialise<Pairwise>(shape));
      REQUIRE_MESSAGE(verdict.ok(), text(verdict.fault));
      counts(shape, verdict);
    }
  }
}

TEST_CASE("one peer per round, a left fold, and nothing but inputs read from others") {
  for (int p = 2; p <= 17; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      if (!Pairwise::supports(shape)) continue;
      CAPTURE(test::describe(shape));
      CHECK(Pairwise::scratch_slots(shape) == 0);
      for (int round = 0; round < p - 1; ++round) {
        for (int rank = 0; rank < p; ++rank) {
          std::set<int> peers;
          for (const Move& move : Pairwise::by(shape, rank, round)) {
            for (const Piece& piece : move.from) {
              if (piece.rank == rank) continue;
              peers.insert(piece.rank);
              CHECK(piece.buffer == Buffer::input);
              CHECK(move.from.back().rank == (round > 0 || piece.rank > rank ? piece.rank : move.from.back().rank));
            }
          }
          CHECK(peers.size() == 1);
          if (std::has_single_bit(static_cast<unsigned>(p))) {
            CHECK(Pairwise::partners(shape, rank, round) == std::vector<int>(peers.begin(), peers.end()));
          }
        }
      }
    }
  }
}

TEST_CASE("pairwise schedules name exactly the partners that touch a buffer, at any number of ranks") {
  for (int p = 1; p <= 18; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      if (Pairwise::supports(shape)) CHECK(test::check_partners(Pairwise{}, shape) == 0);
    }
  }
  test::check_partners_of(Pairwise{}, Shape{Operation::reduce_scatter, 100000, 0, true}, {0, 99999});
  test::check_partners_of(Pairwise{}, Shape{Operation::all_gather, 1 << 17, 0, true}, {5});
}

TEST_CASE("pairwise plans and messages run") { test::check_plans(Pairwise{}, {1, 2, 3, 5, 8}); }
