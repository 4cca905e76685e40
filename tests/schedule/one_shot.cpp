// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/one_shot.hpp"

#include <doctest/doctest.h>

#include "generator_laws.hpp"

using namespace meshwise;

namespace {

constexpr bool proven(Operation operation, bool in_place, int ranks, int root = 0) {
  const Verdict verdict = verify(materialise<OneShot>(Shape{operation, ranks, root, in_place}));
  return verdict.ok() && verdict.left_fold_in_rank_order && verdict.identical_on_all_ranks;
}

static_assert(proven(Operation::all_reduce, false, 7) && proven(Operation::all_reduce, true, 1));
static_assert(proven(Operation::reduce, false, 7, 2) && proven(Operation::reduce, true, 7, 2));
static_assert(proven(Operation::all_gather, false, 7) && proven(Operation::all_gather, true, 7));
static_assert(proven(Operation::broadcast, false, 7, 6) && proven(Operation::broadcast, true, 7, 6));
static_assert(proven(Operation::inclusive_scan, false, 7) && proven(Operation::exclusive_scan, false, 7));

}  // namespace

TEST_CASE("one-shot schedules are right, in rank order, and move what the formulas say") {
  for (int p = 1; p <= 33; ++p) {
    const std::int64_t n = p - 1;
    for (const Shape& shape : test::sampled_shapes(p)) {
      if (!OneShot::supports(shape)) continue;
      CAPTURE(test::describe(shape));
      const Verdict verdict = verify(materialise<OneShot>(shape));
      REQUIRE_MESSAGE(verdict.ok(), text(verdict.fault));
      CHECK((verdict.left_fold_in_rank_order && verdict.identical_on_all_ranks && verdict.rounds == 1));
      CHECK(verdict.written == Count{0, 0});
      switch (shape.operation) {
        case Operation::all_reduce: CHECK(verdict.read == Count{p * p * n, p * n}); break;
        case Operation::reduce: CHECK(verdict.read == Count{p * n, p * n}); break;
        case Operation::all_gather: CHECK(verdict.read == Count{p * n, n}); break;
        case Operation::broadcast: CHECK(verdict.read == Count{p * n, p > 1 ? p : 0}); break;
        default: CHECK(verdict.read == Count{p * p * n / 2, p * n}); break;
      }
      // A scan at once rounds once, which is not how a scan is defined from the third rank on.
      const bool inclusive = shape.operation == Operation::inclusive_scan;
      const bool scan = inclusive || shape.operation == Operation::exclusive_scan;
      CHECK(verdict.canonical == (!scan || p <= (inclusive ? 2 : 3)));
      CHECK(OneShot::scratch_slots(shape) == 0);
    }
  }
  CHECK(verify(materialise<OneShot>(Shape{Operation::all_gather, 1000, 0, true})).ok());
  CHECK(verify(materialise<OneShot>(Shape{Operation::all_reduce, 100, 0, false})).canonical);
}

TEST_CASE("in place is refused exactly where contributions would be overwritten") {
  for (int p = 1; p <= 9; ++p) {
    CHECK(OneShot::supports(Shape{Operation::all_reduce, p, 0, true}) == (p == 1));
    for (const Operation operation : {Operation::inclusive_scan, Operation::exclusive_scan}) {
      CHECK(OneShot::supports(Shape{operation, p, 0, true}) == (p <= 2));
    }
  }
  // What is refused would be wrong.
  Schedule broken = materialise<OneShot>(Shape{Operation::all_reduce, 2, 0, false});
  broken.shape.in_place = true;
  CHECK(verify(broken).fault == Fault::conflict);
  for (const Operation operation : {Operation::inclusive_scan, Operation::exclusive_scan}) {
    broken = materialise<OneShot>(Shape{operation, 3, 0, false});
    broken.shape.in_place = true;
    CHECK(verify(broken).fault == Fault::conflict);
  }
  for (const Operation operation : {Operation::reduce_scatter, Operation::all_to_all, Operation::gather}) {
    CHECK(!OneShot::supports(Shape{operation, 4, 0, false}));
  }
}

TEST_CASE("one-shot schedules name their partners exactly and work on lanes") {
  for (int p = 1; p <= 9; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      if (OneShot::supports(shape)) CHECK(test::check_partners(OneShot{}, shape) == 0);
    }
    test::check_same_in_place(OneShot{}, Operation::reduce, p);
  }
  test::check_plans(OneShot{});
}

TEST_CASE("a rank of very many asks for its own moves only") {
  const Shape shape{Operation::reduce, 100000, 7, true};
  CHECK(OneShot::by(shape, 8, 0).empty());
  CHECK(OneShot::by(shape, 7, 0).size() == 1);
  CHECK(OneShot::partners(shape, 8, 0) == std::vector<int>{7});
  CHECK(OneShot::partners(shape, 7, 0).empty());
  CHECK(OneShot::by(Shape{Operation::broadcast, 100000, 7, true}, 99999, 0).size() == 1);
}
