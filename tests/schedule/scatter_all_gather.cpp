// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/scatter_all_gather.hpp"

#include <doctest/doctest.h>

#include <bit>

#include "../support/sanitized.hpp"
#include "generator_laws.hpp"

using namespace meshwise;

namespace {

constexpr bool proven(Operation operation, bool in_place, int ranks, int root) {
  return verify(materialise<ScatterAllGather>(Shape{operation, ranks, root, in_place})).ok();
}

static_assert(proven(Operation::broadcast, false, 7, 3) && proven(Operation::broadcast, true, 8, 5));
static_assert(proven(Operation::reduce, false, 7, 3) && proven(Operation::reduce, true, 8, 5));

/// The size of the range below a place of the binomial tree.
std::int64_t share(int p, int place) { return std::min(place & -place, p - place); }

void check_counts(const Shape& shape, const Verdict& verdict) {
  const int p = shape.ranks;
  CHECK(verdict.written == Count{0, 0});
  if (p == 1) return;
  CHECK(verdict.rounds == 2 * std::bit_width(static_cast<unsigned>(p - 1)));
  if (shape.operation == Operation::broadcast) {
    CHECK(verdict.read == Count{std::int64_t{p} * (p - 1), p});
  } else {
    std::int64_t gathered = 0;
    for (int place = 1; place < p; ++place) gathered += share(p, place);
    CHECK(verdict.read == Count{std::int64_t{p} * (p - 1) + gathered, 2 * (p - 1)});
  }
}

}  // namespace

TEST_CASE("scatter and all-gather schedules are right and move what the formulas say") {
  for (int p = 1; p <= 33; ++p) {
    for (const Shape& shape : test::sampled_shapes(p)) {
      if (!ScatterAllGather::supports(shape)) continue;
      CAPTURE(test::describe(shape));
      const Verdict verdict = verify(materialise<ScatterAllGather>(shape));
      REQUIRE_MESSAGE(verdict.ok(), text(verdict.fault));
      CHECK(verdict.identical_on_all_ranks);
      check_counts(shape, verdict);
    }
  }
  for (const int p : {64, 100, 257, 1000, 1024}) {
    if (p > building::most_ranks) continue;
    for (const Operation operation : {Operation::broadcast, Operation::reduce}) {
      const Shape shape{operation, p, p / 3, true};
      CAPTURE(test::describe(shape));
      const Verdict verdict = verify(materialise<ScatterAllGather>(shape));
      REQUIRE_MESSAGE(verdict.ok(), text(verdict.fault));
      CHECK(verdict.identical_on_all_ranks);
      check_counts(shape, verdict);
    }
  }
}

TEST_CASE("the root of a broadcast serves at most twice the vector") {
  for (int p = 2; p <= 33; ++p) {
    std::int64_t served = 0;
    for (const Round& round : materialise<ScatterAllGather>(Shape{Operation::broadcast, p, 1, true}).rounds) {
      for (const Move& move : round) served += move.from[0].rank == 1 ? move.from[0].count : 0;
    }
    CHECK(served <= 2 * (p - 1));
  }
}

TEST_CASE("a rank has few moves in a round") {
  for (const Operation operation : {Operation::broadcast, Operation::reduce}) {
    const Shape shape{operation, 1000, 77, true};
    for (int k = 0; k < ScatterAllGather::rounds(shape); ++k) {
      for (int rank = 0; rank < 1000; ++rank) CHECK(ScatterAllGather::by(shape, rank, k).size() <= 3);
    }
  }
}

TEST_CASE("scatter and all-gather partners name whoever touches a buffer, and nobody else") {
  for (int p = 1; p <= 18; ++p) {
    for (const Shape& shape : test::sampled_shapes(p)) {
      if (ScatterAllGather::supports(shape)) CHECK(test::check_partners(ScatterAllGather{}, shape) == 0);
    }
  }
  for (const Operation operation : {Operation::broadcast, Operation::reduce}) {
    test::check_partners_of(ScatterAllGather{}, Shape{operation, 100000, 7, true}, {0, 7, 8, 23, 40000, 99999});
  }
}

TEST_CASE("scatter and all-gather moves of a reduce are the same in and out of place") {
  for (int p = 1; p <= 17; ++p) test::check_same_in_place(ScatterAllGather{}, Operation::reduce, p);
}

TEST_CASE("scatter and all-gather use the scratch that they ask for") {
  for (int p = 1; p <= 33; ++p) {
    const Shape shape{Operation::reduce, p, p / 2, false};
    CHECK(test::scratch_used(ScatterAllGather{}, shape) == ScatterAllGather::scratch_slots(shape));
  }
}

TEST_CASE("scatter and all-gather plans and messages run") { test::check_plans(ScatterAllGather{}); }
