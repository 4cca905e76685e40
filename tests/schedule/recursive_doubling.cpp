// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/recursive_doubling.hpp"

#include <doctest/doctest.h>

#include "generator_laws.hpp"

using namespace meshwise;

namespace {

constexpr bool proven(Operation operation, bool in_place, int ranks) {
  return verify(materialise<RecursiveDoubling>(Shape{operation, ranks, 0, in_place})).ok();
}

static_assert(proven(Operation::all_reduce, false, 1) && proven(Operation::all_reduce, true, 1));
static_assert(proven(Operation::all_reduce, false, 7) && proven(Operation::all_reduce, true, 8));
static_assert(proven(Operation::all_gather, false, 8) && proven(Operation::all_gather, true, 8));
static_assert(proven(Operation::inclusive_scan, false, 7) && proven(Operation::inclusive_scan, true, 7));
static_assert(proven(Operation::exclusive_scan, false, 7) && proven(Operation::exclusive_scan, true, 7));
static_assert(!RecursiveDoubling::supports(Shape{Operation::all_gather, 6, 0, false}));
static_assert(!RecursiveDoubling::supports(Shape{Operation::reduce_scatter, 8, 0, false}));

int floor_lg(int p) {
  int k = 0;
  while ((2 << k) <= p) ++k;
  return k;
}

int ceil_lg(int p) { return p == 1 ? 0 : floor_lg(p - 1) + 1; }

/// The formulas, counted from p alone.
void counts(const Shape& shape, const Verdict& verdict) {
  const std::int64_t p = shape.ranks;
  const std::int64_t m = floor_lg(shape.ranks);
  const std::int64_t extra = p - (std::int64_t{1} << m);
  CHECK(verdict.written == Count{0, 0});
  switch (shape.operation) {
    case Operation::all_reduce:
      if (p > 1) CHECK(verdict.rounds == m + (extra > 0 ? 2 : p == 2 && shape.in_place ? 1 : 0));
      CHECK(verdict.read.total == p * ((p - extra) * m + 2 * extra));
      CHECK(verdict.read.most == p * (m + (extra > 0 ? 1 : 0)));
      CHECK(verdict.messages * p == verdict.read.total);
      break;
    case Operation::all_gather:
      if (p > 1) CHECK(verdict.rounds == m);
      CHECK(verdict.read == Count{p * (p - 1), p - 1});
      CHECK(verdict.messages == p * m);
      break;
    case Operation::inclusive_scan: {
      if (p > 1) CHECK(verdict.rounds == ceil_lg(shape.ranks));
      std::int64_t total = 0;
      for (int distance = 1; distance < p; distance *= 2) total += p * (p - distance);
      CHECK(verdict.read == Count{total, p * ceil_lg(shape.ranks)});
      break;
    }
    default: {
      const int rounds = p < 3 ? static_cast<int>(p - 1) : ceil_lg(shape.ranks - 1);
      CHECK(verdict.rounds == rounds + (p == 3 && shape.in_place ? 1 : 0));
      std::int64_t total = 0;
      for (int rank = 1; rank < p; ++rank) total += p * (rank < 2 ? 1 : ceil_lg(rank) + 1);
      CHECK(verdict.read == Count{total, p < 3 ? (p - 1) * p : p * (rounds + 1)});
    }
  }
}

}  // namespace

TEST_CASE("recursive doubling is right and moves what the formulas say") {
  for (int p = 1; p <= 33; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      if (!RecursiveDoubling::supports(shape)) continue;
      CAPTURE(test::describe(shape));
      const Verdict verdict = verify(materialise<RecursiveDoubling>(shape));
      REQUIRE_MESSAGE(verdict.ok(), text(verdict.fault));
      counts(shape, verdict);
    }
  }
  for (const int p : {64, 100, 257}) {  // at 257 some: whole vectors are ranks^2 slots in every round
    for (const Shape& shape : test::all_shapes(p)) {
      if (!RecursiveDoubling::supports(shape) || (p > 100 && shape.in_place)) continue;
      CAPTURE(test::describe(shape));
      const Verdict verdict = verify(materialise<RecursiveDoubling>(shape));
      REQUIRE_MESSAGE(verdict.ok(), text(verdict.fault));
      counts(shape, verdict);
    }
  }
  const Verdict many = verify(materialise<RecursiveDoubling>(Shape{Operation::all_gather, 1024, 0, true}));
  REQUIRE(many.ok());
  CHECK(many.rounds == 10);
}

TEST_CASE("recursive doubling combines in rank order, the same way on all ranks") {
  for (int p = 1; p <= 33; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      if (!RecursiveDoubling::supports(shape) || !combines(shape.operation)) continue;
      CAPTURE(test::describe(shape));
      const Verdict verdict = verify(materialise<RecursiveDoubling>(shape));
      CHECK(verdict.in_rank_order);
      CHECK(verdict.identical_on_all_ranks);
      const int most = shape.operation == Operation::inclusive_scan ? 2 : 3;
      CHECK(verdict.left_fold_in_rank_order == (p <= most));
    }
  }
}

TEST_CASE("recursive doubling needs the scratch it asks for") {
  for (int p = 1; p <= 70; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      if (!RecursiveDoubling::supports(shape)) continue;
      CAPTURE(test::describe(shape));
      CHECK(test::scratch_used(RecursiveDoubling{}, shape) == RecursiveDoubling::scratch_slots(shape));
    }
  }
}

TEST_CASE("recursive doubling names exactly the partners that touch a buffer, at any number of ranks") {
  for (int p = 1; p <= 18; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      if (RecursiveDoubling::supports(shape)) CHECK(test::check_partners(RecursiveDoubling{}, shape) == 0);
    }
  }
  for (const Operation operation : {Operation::all_reduce, Operation::inclusive_scan, Operation::exclusive_scan}) {
    for (const bool in_place : {false, true}) {
      test::check_partners_of(RecursiveDoubling{}, Shape{operation, 100000, 0, in_place},
                              {0, 1, 2, 3, 31071, 68927, 99998, 99999});
    }
  }
  test::check_partners_of(RecursiveDoubling{}, Shape{Operation::all_gather, 1 << 17, 0, false}, {0, 1, 77777, 131071});
}

TEST_CASE("recursive doubling plans and messages run") { test::check_plans(RecursiveDoubling{}, {1, 2, 3, 5, 8, 11}); }
