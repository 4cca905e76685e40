// SPDX-License-Identifier: Apache-2.0
// The table of `./run schedules` for a few ranks, against the proofs and against the closed formulas.
#include <doctest/doctest.h>

#include "../../benchmarks/support/schedule_table.hpp"
#include "all_shapes.hpp"
#include "meshwise/schedule/verify.hpp"

using namespace meshwise;

namespace {

Verdict prove(const AnyGenerator& generator, const Shape& shape) {
  Schedule schedule{shape, generator.scratch_slots(shape), {}};
  for (int k = 0; k < generator.rounds(shape); ++k) {
    Round round;
    for (int r = 0; r < shape.ranks; ++r) {
      for (Move& move : generator.by(shape, r, k)) round.push_back(std::move(move));
    }
    schedule.rounds.push_back(std::move(round));
  }
  return verify(schedule);
}

static_assert(table::floor_of_lg(1) == 0 && table::floor_of_lg(7) == 2 && table::floor_of_lg(8) == 3);
static_assert(table::ceil_of_lg(1) == 0 && table::ceil_of_lg(7) == 3 && table::ceil_of_lg(8) == 3);
static_assert(table::torus_of(12) == std::pair{3, 4} && table::torus_of(7) == std::pair{1, 7});
static_assert(table::formula(Algorithm::halving_doubling, Shape{Operation::all_reduce, 8, 0, false}).blocks == 14);

}  // namespace

TEST_CASE("every algorithm's schedules cost what the formulas say, for every operation") {
  std::vector<int> algorithms(static_cast<std::size_t>(algorithm_count), 0);
  std::vector<int> operations(std::size(table::operations), 0);
  for (int p = 2; p <= 20; ++p) {
    const table::Parameters parameters(p);
    for (int a = 0; a < algorithm_count; ++a) {
      const auto algorithm = static_cast<Algorithm>(a);
      const AnyGenerator generator = parameters.generator(algorithm);
      for (std::size_t o = 0; o < std::size(table::operations); ++o) {
        const Shape shape = parameters.shape(table::operations[o], p);
        if (!generator.supports(shape)) continue;
        CAPTURE(algorithm_name(algorithm));
        CAPTURE(test::describe(shape));
        const table::Counts counts = table::count(generator, shape);
        const Verdict verdict = prove(generator, shape);
        REQUIRE_MESSAGE(verdict.ok(), text(verdict.fault));
        CHECK((verdict.read == counts.read && verdict.written == counts.written && verdict.rounds == counts.rounds));
        CHECK(verdict.identical_on_all_ranks);
        const table::Formula formula = table::formula(algorithm, shape);
        CHECK(formula.blocks > 0);
        CHECK(table::compare(counts, formula).expected);
        ++algorithms[static_cast<std::size_t>(a)];
        ++operations[o];
      }
    }
  }
  for (int a = 0; a < algorithm_count; ++a) {
    const bool none = a == static_cast<int>(Algorithm::automatic) || a == static_cast<int>(Algorithm::custom);
    CHECK((algorithms[static_cast<std::size_t>(a)] == 0) == none);
  }
  for (const int number : operations) CHECK(number > 0);
}

TEST_CASE("powers of two meet the formulas exactly, and no algorithm beats the lower bounds") {
  for (const int p : {2, 4, 8, 16, 32}) {
    const table::Parameters parameters(p);
    for (const Algorithm algorithm :
         {Algorithm::recursive_doubling, Algorithm::halving_doubling, Algorithm::circulant, Algorithm::bruck}) {
      for (const Operation operation : table::operations) {
        const Shape shape = parameters.shape(operation, p);
        const AnyGenerator generator = parameters.generator(algorithm);
        if (!generator.supports(shape) || operation == Operation::exclusive_scan) continue;
        CAPTURE(test::describe(shape));
        CHECK(table::compare(table::count(generator, shape), table::formula(algorithm, shape)).none());
      }
    }
  }
  // Whatever the algorithm: every rank lacks p - 1 blocks, of an all_reduce twice.
  for (int p = 2; p <= 33; ++p) {
    const table::Parameters parameters(p);
    for (int a = 0; a < algorithm_count; ++a) {
      const AnyGenerator generator = parameters.generator(static_cast<Algorithm>(a));
      for (const Operation operation : {Operation::all_reduce, Operation::reduce_scatter, Operation::all_gather,
                                        Operation::all_to_all, Operation::gather, Operation::scatter}) {
        const Shape shape = parameters.shape(operation, p);
        if (!generator.supports(shape)) continue;
        CAPTURE(test::describe(shape));
        CHECK(table::count(generator, shape).path >= (operation == Operation::all_reduce ? 2 : 1) * (p - 1));
      }
    }
  }
}
