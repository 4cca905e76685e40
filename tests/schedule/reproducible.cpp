// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/reproducible.hpp"

#include <doctest/doctest.h>

#include "all_shapes.hpp"
#include "meshwise/schedule/direct.hpp"
#include "meshwise/schedule/one_shot.hpp"
#include "meshwise/schedule/ring.hpp"
#include "meshwise/schedule/two_shot.hpp"

using namespace meshwise;

namespace {

static_assert(reproducible(Direct{}, Shape{Operation::all_reduce, 6, 0, true}));
static_assert(reproducible(TwoShot{}, Shape{Operation::all_reduce, 6, 0, true}));
static_assert(!reproducible(Ring{}, Shape{Operation::all_reduce, 6, 0, false}));
static_assert(reproducible(Ring{}, Shape{Operation::all_gather, 6, 0, false}));
static_assert(!reproducible(OneShot{}, Shape{Operation::all_reduce, 6, 0, true}), "not supported in place");

/// Right in rank order, but on more ranks than 3 the first two are combined, and stored, before the others.
struct Halting : TwoShot {
  static constexpr int rounds(const Shape&) { return 3; }
  static constexpr std::vector<Move> by(const Shape& shape, int rank, int round) {
    if (shape.ranks <= 3) return round < TwoShot::rounds(shape) ? TwoShot::by(shape, rank, round) : std::vector<Move>();
    if (round == 2) return TwoShot::by(shape, rank, 1);
    std::vector<Move> moves = TwoShot::by(shape, rank, 0);
    Move& move = moves[0];
    if (round == 0) {
      move.from.resize(2);
    } else {
      move.from.erase(move.from.begin());
      move.from[0] = move.to[0];
    }
    return moves;
  }
};

}  // namespace

TEST_CASE("reproducible is what verify proves, and nothing else") {
  for (int p = 1; p <= 9; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      CAPTURE(test::describe(shape));
      const auto agrees = [&](const auto& generator) {
        if (!generator.supports(shape)) return !reproducible(generator, shape);
        const Verdict verdict = verify(materialise(generator, shape));
        return reproducible(generator, shape) == (verdict.ok() && verdict.canonical);
      };
      CHECK(agrees(Direct{}));
      CHECK(agrees(OneShot{}));
      CHECK(agrees(TwoShot{}));
      CHECK(agrees(Ring{}));
    }
  }
}

TEST_CASE("a partial sum that is stored is not reproducible, though it is in rank order") {
  const Shape shape{Operation::all_reduce, 5, 0, false};
  const Verdict verdict = verify(materialise<Halting>(shape));
  REQUIRE(verdict.ok());
  CHECK(verdict.left_fold_in_rank_order);
  CHECK(!verdict.canonical);
  CHECK(!reproducible(Halting{}, shape));
  CHECK(reproducible(Halting{}, Shape{Operation::all_reduce, 3, 0, false}));
}

TEST_CASE("what is too large to be proven is not reproducible") {
  CHECK(reproducible(Direct{}, Shape{Operation::all_reduce, 700, 0, false}));
  CHECK(!reproducible(Direct{}, Shape{Operation::all_reduce, 700, 0, false}, 1000));
  CHECK(!reproducible(Direct{}, Shape{Operation::all_reduce, 1300, 0, false}));
  CHECK(!reproducible(Ring{}, Shape{Operation::all_reduce, 100000, 0, false}));
  CHECK(reproducible(Ring{}, Shape{Operation::all_gather, 100000, 0, false}));
}
