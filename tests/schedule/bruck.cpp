// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/bruck.hpp"

#include <doctest/doctest.h>

#include <bit>

#include "../support/sanitized.hpp"
#include "generator_laws.hpp"

using namespace meshwise;

namespace {

constexpr bool proven(Operation operation, bool in_place, int ranks) {
  return verify(materialise<Bruck>(Shape{operation, ranks, 0, in_place})).ok();
}

static_assert(proven(Operation::all_gather, false, 1) && proven(Operation::all_gather, true, 1));
static_assert(proven(Operation::all_gather, false, 7) && proven(Operation::all_gather, true, 8));
static_assert(proven(Operation::all_to_all, false, 8) && proven(Operation::all_to_all, false, 9));
static_assert(!Bruck::supports(Shape{Operation::all_reduce, 8, 0, false}));

int ceil_lg(int p) {
  int k = 0;
  for (int reach = 1; reach < p; reach *= 2) ++k;
  return k;
}

void counts(const Shape& shape, const Verdict& verdict) {
  const std::int64_t p = shape.ranks;
  CHECK(verdict.written == Count{0, 0});
  if (p > 1) CHECK(verdict.rounds == ceil_lg(shape.ranks));
  CHECK(verdict.messages == p * ceil_lg(shape.ranks));
  std::int64_t blocks = p - 1;
  if (shape.operation == Operation::all_to_all) {
    blocks = 0;
    for (int way = 1; way < p; ++way) blocks += std::popcount(static_cast<unsigned>(way));
    if (std::has_single_bit(static_cast<unsigned>(p))) CHECK(blocks == p / 2 * ceil_lg(shape.ranks));
  }
  CHECK(verdict.read == Count{p * blocks, blocks});
}

}  // namespace

TEST_CASE("Bruck schedules are right and move what the formulas say") {
  for (int p = 1; p <= 33; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      if (!Bruck::supports(shape)) continue;
      CAPTURE(test::describe(shape));
      const Verdict verdict = verify(materialise<Bruck>(shape));
      REQUIRE_MESSAGE(verdict.ok(), text(verdict.fault));
      counts(shape, verdict);
    }
  }
  for (const int p : {64, 100, 257, 1000, 1024}) {
    if (p > building::most_ranks) continue;
    for (const Operation operation : {Operation::all_gather, Operation::all_to_all}) {
      if (operation == Operation::all_to_all && p > 100) continue;
      const Shape shape{operation, p, 0, false};
      CAPTURE(test::describe(shape));
      const Verdict verdict = verify(materialise<Bruck>(shape));
      REQUIRE_MESSAGE(verdict.ok(), text(verdict.fault));
      counts(shape, verdict);
    }
  }
}

TEST_CASE("blocks under way lie in scratch, one or two slots for each distance of several hops") {
  for (int p = 1; p <= 70; ++p) {
    const Shape shape{Operation::all_to_all, p, 0, false};
    CAPTURE(p);
    int slots = 0;
    for (int way = 1; way < p; ++way) {
      const int hops = std::popcount(static_cast<unsigned>(way));
      slots += hops > 1 ? 1 : 0;
      slots += hops > 2 ? 1 : 0;
    }
    CHECK(Bruck::scratch_slots(shape) == slots);
    CHECK(test::scratch_used(Bruck{}, shape) == slots);
    // An output slot is as long as the block it is for, so no other block may ever lie in it.
    for (const Round& round : materialise<Bruck>(shape).rounds) {
      for (const Move& move : round) {
        const Piece& to = move.to[0];
        if (to.buffer == Buffer::output) CHECK(move.block == output_block(shape, to.rank, to.slot));
      }
    }
  }
}

TEST_CASE("Bruck schedules name exactly the partners that touch a buffer, at any number of ranks") {
  for (int p = 1; p <= 18; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      if (Bruck::supports(shape)) CHECK(test::check_partners(Bruck{}, shape) == 0);
    }
  }
  test::check_partners_of(Bruck{}, Shape{Operation::all_gather, 100000, 0, true}, {0, 1, 34464, 65535, 99999});
  test::check_partners_of(Bruck{}, Shape{Operation::all_to_all, 46340, 0, false}, {46339});
}

TEST_CASE("Bruck plans and messages run") { test::check_plans(Bruck{}, {1, 2, 3, 5, 8, 11}); }
