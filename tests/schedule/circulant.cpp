// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/circulant.hpp"

#include <doctest/doctest.h>

#include "../support/sanitized.hpp"
#include "generator_laws.hpp"

using namespace meshwise;

namespace {

constexpr bool proven(Operation operation, bool in_place, int ranks) {
  return verify(materialise<Circulant>(Shape{operation, ranks, 0, in_place})).ok();
}

static_assert(proven(Operation::all_reduce, false, 1) && proven(Operation::all_reduce, true, 1));
static_assert(proven(Operation::all_reduce, false, 7) && proven(Operation::all_reduce, true, 8));
static_assert(proven(Operation::reduce_scatter, false, 8) && proven(Operation::reduce_scatter, true, 7));
static_assert(proven(Operation::all_gather, false, 7) && proven(Operation::all_gather, true, 8));
static_assert(!Circulant::supports(Shape{Operation::broadcast, 8, 0, false}));

int ceil_lg(int p) {
  int k = 0;
  for (int reach = 1; reach < p; reach *= 2) ++k;
  return k;
}

/// Optimal in rounds and in blocks, for every p.
void counts(const Shape& shape, const Verdict& verdict) {
  const std::int64_t p = shape.ranks;
  const std::int64_t twice = shape.operation == Operation::all_reduce ? 2 : 1;
  CHECK(verdict.written == Count{0, 0});
  CHECK(verdict.read == Count{twice * p * (p - 1), twice * (p - 1)});
  CHECK(verdict.messages == twice * p * ceil_lg(shape.ranks));
  if (p > 1) CHECK(verdict.rounds == twice * ceil_lg(shape.ranks));
}

const Operation operations[] = {Operation::all_reduce, Operation::reduce_scatter, Operation::all_gather};

}  // namespace

TEST_CASE("circulant schedules are right and optimal in rounds and blocks") {
  for (int p = 1; p <= 200; p += p < 33 ? 1 : 13) {
    for (const Operation operation : operations) {
      for (const bool in_place : {false, true}) {
        const Shape shape{operation, p, 0, in_place};
        CAPTURE(test::describe(shape));
        const Verdict verdict = verify(materialise<Circulant>(shape));
        REQUIRE_MESSAGE(verdict.ok(), text(verdict.fault));
        counts(shape, verdict);
        CHECK(verdict.in_rank_order == (!combines(operation) || p == 1));
        CHECK(verdict.identical_on_all_ranks);
      }
    }
  }
  for (const int p : {257, 1000, 1024}) {
    if (p > building::most_ranks) continue;
    const Shape shape{p % 2 == 0 ? Operation::reduce_scatter : Operation::all_reduce, p, 0, true};
    const Verdict verdict = verify(materialise<Circulant>(shape));
    REQUIRE_MESSAGE(verdict.ok(), text(verdict.fault));
    counts(shape, verdict);
  }
}

TEST_CASE("a circulant step is at most two moves of consecutive blocks, once three") {
  for (int p = 1; p <= 70; ++p) {
    for (const Operation operation : operations) {
      const Shape shape{operation, p, 0, false};
      CAPTURE(test::describe(shape));
      for (int round = 0; round < Circulant::rounds(shape); ++round) {
        const bool once = round == 1 && p % 2 == 1 && operation != Operation::all_gather;
        const bool own = round == 0 && operation == Operation::all_gather;
        for (int rank = 0; rank < p; ++rank) {
          CHECK(Circulant::by(shape, rank, round).size() <= (once || own ? 3U : 2U));
        }
      }
    }
  }
}

TEST_CASE("circulant schedules need the scratch they ask for") {
  for (int p = 1; p <= 70; ++p) {
    for (const Operation operation : operations) {
      const Shape shape{operation, p, 0, false};
      CAPTURE(test::describe(shape));
      CHECK(test::scratch_used(Circulant{}, shape) == Circulant::scratch_slots(shape));
    }
  }
}

TEST_CASE("circulant schedules name exactly the partners that touch a buffer, at any number of ranks") {
  for (int p = 1; p <= 18; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      if (Circulant::supports(shape)) CHECK(test::check_partners(Circulant{}, shape) == 0);
    }
  }
  for (const Operation operation : operations) {
    const Shape shape{operation, 100000, 0, true};
    test::check_partners_of(Circulant{}, shape, {0, 1, 2, 49999, 50000, 99999});
    CHECK(Circulant::rounds(shape) == (operation == Operation::all_reduce ? 34 : 17));
  }
}

TEST_CASE("circulant plans and messages run") { test::check_plans(Circulant{}, {1, 2, 3, 5, 8, 11}); }
