// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/halving_doubling.hpp"

#include <doctest/doctest.h>

#include <bit>

#include "../support/sanitized.hpp"
#include "generator_laws.hpp"

using namespace meshwise;

namespace {

constexpr bool proven(Operation operation, bool in_place, int ranks, int root = 0) {
  return verify(materialise<HalvingDoubling>(Shape{operation, ranks, root, in_place})).ok();
}

static_assert(proven(Operation::all_reduce, false, 1) && proven(Operation::reduce, true, 1));
static_assert(proven(Operation::all_reduce, false, 7) && proven(Operation::all_reduce, true, 8));
static_assert(proven(Operation::reduce_scatter, false, 7) && proven(Operation::reduce_scatter, true, 8));
static_assert(proven(Operation::reduce, false, 7, 3) && proven(Operation::reduce, true, 8, 5));
static_assert(!HalvingDoubling::supports(Shape{Operation::all_gather, 8, 0, false}));

/// The formulas. In every halving each slot is kept by half as many workers as before, which adds up to p (2^m - 1)
/// whether or not slots divide evenly.
void counts(const Shape& shape, const Verdict& verdict) {
  const std::int64_t p = shape.ranks;
  const std::int64_t workers = static_cast<std::int64_t>(std::bit_floor(static_cast<unsigned>(p)));
  const std::int64_t m = std::countr_zero(static_cast<unsigned>(workers));
  const std::int64_t extra = p - workers;
  const std::int64_t halving = p * (workers - 1);
  CHECK(verdict.written == Count{0, 0});
  if (p == 1) {
    CHECK(verdict.read == Count{0, 0});
    return;
  }
  switch (shape.operation) {
    case Operation::all_reduce:
      CHECK(verdict.rounds == 2 * m + (extra > 0 ? 2 : 0));
      CHECK(verdict.read.total == 2 * halving + 2 * p * extra);
      if (extra == 0) CHECK(verdict.read.most == 2 * (p - 1));
      CHECK(verdict.read.most <= 2 * (p - 1) + (extra > 0 ? p + m : 0));
      break;
    case Operation::reduce_scatter:
      CHECK(verdict.rounds == m + (extra > 0 ? 2 : 0));
      CHECK(verdict.read.total == halving + (p + 1) * extra);
      if (extra == 0) CHECK(verdict.read.most == p - 1);
      CHECK(verdict.read.most <= p - 1 + (extra > 0 ? p + m : 0));
      break;
    default:
      CHECK(verdict.rounds == 2 * m + (extra > 0 ? 1 : 0));
      if (extra == 0) CHECK(verdict.read == Count{halving + p * m / 2, 2 * (p - 1)});
      CHECK(verdict.read.most <= 2 * (p - 1) + (extra > 0 ? p + m : 0));
  }
}

}  // namespace

TEST_CASE("halving and doubling is right and moves what the formulas say") {
  for (int p = 1; p <= 33; ++p) {
    for (const Shape& shape : test::sampled_shapes(p)) {
      if (!HalvingDoubling::supports(shape)) continue;
      CAPTURE(test::describe(shape));
      const Verdict verdict = verify(materialise<HalvingDoubling>(shape));
      REQUIRE_MESSAGE(verdict.ok(), text(verdict.fault));
      counts(shape, verdict);
    }
  }
  for (const int p : {64, 100}) {
    for (const Operation operation : {Operation::all_reduce, Operation::reduce_scatter, Operation::reduce}) {
      const Shape shape{operation, p, operation == Operation::reduce ? p / 3 : 0, true};
      CAPTURE(test::describe(shape));
      const Verdict verdict = verify(materialise<HalvingDoubling>(shape));
      REQUIRE_MESSAGE(verdict.ok(), text(verdict.fault));
      counts(shape, verdict);
    }
  }
  for (const int p : {257, 1000, 1024}) {
    if (p > building::most_ranks) continue;
    const Shape shape{Operation::reduce_scatter, p, 0, false};
    const Verdict verdict = verify(materialise<HalvingDoubling>(shape));
    REQUIRE_MESSAGE(verdict.ok(), text(verdict.fault));
    counts(shape, verdict);
  }
}

TEST_CASE("all_reduce and reduce by halving keep rank order; the largest pieces go to the neighbour") {
  for (int p = 1; p <= 33; ++p) {
    for (const Shape& shape : test::sampled_shapes(p)) {
      if (!HalvingDoubling::supports(shape)) continue;
      CAPTURE(test::describe(shape));
      const Verdict verdict = verify(materialise<HalvingDoubling>(shape));
      CHECK(verdict.identical_on_all_ranks);
      // On 3 ranks the workers of a reduce_scatter still stand for runs of ranks when they combine.
      CHECK(verdict.in_rank_order == (shape.operation != Operation::reduce_scatter || p < 4));
    }
  }
  const std::vector<Move> moves = HalvingDoubling::by(Shape{Operation::all_reduce, 16, 0, true}, 6, 0);
  REQUIRE(moves.size() == 1);
  CHECK(moves[0].from[0] == Piece{6, Buffer::input, 0, 8});
  CHECK(moves[0].from[1] == Piece{7, Buffer::input, 0, 8});
}

TEST_CASE("halving and doubling needs the scratch it asks for") {
  for (int p = 1; p <= 70; ++p) {
    for (const Operation operation : {Operation::all_reduce, Operation::reduce_scatter, Operation::reduce}) {
      const Shape shape{operation, p, operation == Operation::reduce ? p / 2 : 0, false};
      CAPTURE(test::describe(shape));
      const int used = test::scratch_used(HalvingDoubling{}, shape);
      CHECK(used <= HalvingDoubling::scratch_slots(shape));
      if (p > 3) CHECK(used == HalvingDoubling::scratch_slots(shape));
    }
  }
}

TEST_CASE("halving and doubling names exactly the partners that touch a buffer, at any number of ranks") {
  for (int p = 1; p <= 18; ++p) {
    for (const Shape& shape : test::sampled_shapes(p)) {
      if (HalvingDoubling::supports(shape)) CHECK(test::check_partners(HalvingDoubling{}, shape) == 0);
    }
  }
  for (const Operation operation : {Operation::all_reduce, Operation::reduce_scatter, Operation::reduce}) {
    const int root = operation == Operation::reduce ? 12345 : 0;
    test::check_partners_of(HalvingDoubling{}, Shape{operation, 100000, root, true},
                            {0, 1, 2, 3, 12344, 12345, 68927, 68928, 99999});
  }
}

TEST_CASE("a reduce by halving has the same moves in and out of place") {
  for (int p = 1; p <= 17; ++p) test::check_same_in_place(HalvingDoubling{}, Operation::reduce, p);
}

TEST_CASE("halving and doubling plans and messages run") { test::check_plans(HalvingDoubling{}, {1, 2, 3, 5, 6, 8}); }
