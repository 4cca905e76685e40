// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/two_shot.hpp"

#include <doctest/doctest.h>

#include "generator_laws.hpp"

using namespace meshwise;

namespace {

constexpr bool proven(bool in_place, int ranks) {
  const Verdict verdict = verify(materialise<TwoShot>(Shape{Operation::all_reduce, ranks, 0, in_place}));
  return verdict.ok() && verdict.canonical && verdict.identical_on_all_ranks;
}

static_assert(proven(false, 1) && proven(true, 1) && proven(false, 2) && proven(true, 3));
static_assert(proven(false, 8) && proven(true, 8));

}  // namespace

TEST_CASE("two-shot schedules are right, in rank order, and move what the formulas say") {
  for (int p = 1; p <= 65; p += p < 33 ? 1 : 16) {
    for (const bool in_place : {false, true}) {
      const Shape shape{Operation::all_reduce, p, 0, in_place};
      CAPTURE(test::describe(shape));
      const Verdict verdict = verify(materialise<TwoShot>(shape));
      REQUIRE_MESSAGE(verdict.ok(), text(verdict.fault));
      CHECK((verdict.canonical && verdict.left_fold_in_rank_order && verdict.identical_on_all_ranks));
      CHECK(verdict.rounds == (p == 1 ? 1 : 2));
      const std::int64_t n = p - 1;
      CHECK(verdict.read == Count{2 * p * n, 2 * n});
      CHECK(verdict.written == Count{0, 0});
      CHECK(verdict.messages == 2 * p * n);
    }
  }
  CHECK(verify(materialise<TwoShot>(Shape{Operation::all_reduce, 1000, 0, true})).canonical);
}

TEST_CASE("two-shot is an all_reduce, names its partners exactly and works on lanes") {
  for (int p = 1; p <= 9; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      CHECK(TwoShot::supports(shape) == (shape.operation == Operation::all_reduce));
      if (TwoShot::supports(shape) && p > 1) CHECK(test::check_partners(TwoShot{}, shape) == 0);
    }
  }
  test::check_plans(TwoShot{});
}
