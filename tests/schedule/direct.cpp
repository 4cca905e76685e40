// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/direct.hpp"

#include <doctest/doctest.h>

#include "../support/sanitized.hpp"
#include "generator_laws.hpp"

using namespace meshwise;

namespace {

constexpr bool proven(Operation operation, bool in_place, int ranks, int root = 0) {
  const Verdict verdict = verify(materialise<Direct>(Shape{operation, ranks, root, in_place}));
  return verdict.ok() && verdict.left_fold_in_rank_order && verdict.canonical && verdict.identical_on_all_ranks;
}

static_assert(proven(Operation::all_reduce, false, 1) && proven(Operation::all_reduce, true, 1));
static_assert(proven(Operation::all_reduce, false, 2) && proven(Operation::all_reduce, true, 3));
static_assert(proven(Operation::all_reduce, false, 8));
static_assert(proven(Operation::all_reduce, true, 8));
static_assert(proven(Operation::reduce_scatter, false, 8));
static_assert(proven(Operation::reduce_scatter, true, 8));
static_assert(proven(Operation::all_gather, false, 8));
static_assert(proven(Operation::all_gather, true, 8));
static_assert(proven(Operation::broadcast, false, 8));
static_assert(proven(Operation::broadcast, true, 8));
static_assert(proven(Operation::all_to_all, false, 8));
static_assert(proven(Operation::reduce, false, 8, 3) && proven(Operation::reduce, true, 7, 6));
static_assert(proven(Operation::gather, false, 8, 3) && proven(Operation::gather, true, 7, 6));
static_assert(proven(Operation::scatter, false, 8, 3) && proven(Operation::scatter, true, 7, 6));
static_assert(proven(Operation::inclusive_scan, false, 7) && proven(Operation::inclusive_scan, true, 7));
static_assert(proven(Operation::exclusive_scan, false, 7) && proven(Operation::exclusive_scan, true, 7));

}  // namespace

TEST_CASE("direct schedules are right, in rank order, and move what the formulas say") {
  for (int p = 1; p <= 33; ++p) {
    const std::int64_t n = p - 1;
    const std::int64_t one = p > 1 ? 1 : 0;
    for (const Shape& shape : test::sampled_shapes(p)) {
      CAPTURE(test::describe(shape));
      const Verdict verdict = verify(materialise<Direct>(shape));
      REQUIRE_MESSAGE(verdict.ok(), text(verdict.fault));
      CHECK((verdict.in_rank_order && verdict.left_fold_in_rank_order && verdict.canonical));
      CHECK(verdict.identical_on_all_ranks);
      std::int64_t rounds = 1;
      switch (shape.operation) {
        case Operation::all_reduce:
          CHECK(verdict.read == Count{p * n, n});
          CHECK(verdict.written == Count{p * n, n});
          CHECK(verdict.messages == p * n);
          break;
        case Operation::reduce_scatter:
        case Operation::all_to_all:
          CHECK(verdict.read == Count{p * n, n});
          CHECK(verdict.written == Count{0, 0});
          CHECK(verdict.messages == p * n);
          break;
        case Operation::reduce:
          CHECK(verdict.read == Count{p * n, n});
          CHECK(verdict.written == Count{n, one});
          CHECK(verdict.messages == p * n);
          break;
        case Operation::all_gather:
          CHECK(verdict.read == Count{0, 0});
          CHECK(verdict.written == Count{p * n, n});
          CHECK(verdict.messages == p * n);
          break;
        case Operation::broadcast:
          // In place nobody has to write to the root.
          CHECK(verdict.read == Count{n, one});
          CHECK(verdict.written == Count{shape.in_place ? n * n : p * n, n});
          CHECK(verdict.messages == (shape.in_place ? n * n : p * n));
          break;
        case Operation::gather:
          CHECK(verdict.read == Count{0, 0});
          CHECK(verdict.written == Count{n, one});
          CHECK(verdict.messages == n);
          break;
        case Operation::scatter:
          CHECK(verdict.read == Count{n, one});
          CHECK(verdict.written == Count{0, 0});
          CHECK(verdict.messages == n);
          break;
        case Operation::inclusive_scan:
          rounds = p;
          CHECK(verdict.read == Count{2 * n * n + (shape.in_place ? 0 : n), 2 * n - (shape.in_place ? one : 0)});
          CHECK(verdict.written == Count{shape.in_place ? n * n : p * n, n});
          break;
        case Operation::exclusive_scan: {
          const bool carried = shape.in_place && p > 2;
          rounds = carried ? p : n;
          CHECK(verdict.read.total == (carried ? n * (n + 1) : p > 1 ? 2 * n * n - n : 0));
          CHECK(verdict.written == Count{n * n, n});
          break;
        }
        case Operation::exchange: break;
      }
      CHECK(verdict.rounds == rounds);
      CHECK(test::scratch_used(Direct{}, shape) == Direct::scratch_slots(shape));
    }
  }
}

TEST_CASE("a direct all_reduce touches every input and every output slot once") {
  for (int p = 2; p <= 9; ++p) {
    std::int64_t read = 0;
    std::int64_t written = 0;
    for (int r = 0; r < p; ++r) {
      const auto moves = Direct::by(Shape{Operation::all_reduce, p, 0, false}, r, 0);
      REQUIRE(moves.size() == 1);
      read += static_cast<std::int64_t>(moves[0].from.size());
      written += static_cast<std::int64_t>(moves[0].to.size());
    }
    CHECK(read == p * p);
    CHECK(written == p * p);
  }
}

TEST_CASE("in a direct scan nobody waits for another rank's step") {
  for (const Operation operation : {Operation::inclusive_scan, Operation::exclusive_scan}) {
    for (const bool in_place : {false, true}) {
      const Plan plan = compile<Direct>(Shape{operation, 7, 0, in_place}, 3, 2);
      for (const Step& step : plan.steps) {
        for (const Wait& wait : step.waits) CHECK(wait.step == 1);
      }
    }
  }
}

TEST_CASE("direct schedules name their partners, and do not look at whether a root is in place") {
  for (int p = 1; p <= 9; ++p) {
    for (const Shape& shape : test::all_shapes(p)) test::check_partners(Direct{}, shape);
  }
  for (const int p : {1, 2, 7, 21}) {
    for (const Operation operation : {Operation::reduce, Operation::gather, Operation::scatter}) {
      test::check_same_in_place(Direct{}, operation, p);
    }
  }
}

TEST_CASE("a rank of very many asks for its own moves only") {
  const int p = 100000;
  for (const Operation operation :
       {Operation::gather, Operation::scatter, Operation::broadcast, Operation::all_reduce, Operation::reduce}) {
    const Shape shape{operation, p, rooted(operation) ? 77 : 0, true};
    CHECK(Direct::by(shape, 5, 0).size() == 1);
    CHECK(Direct::partners(shape, shape.root, 0).size() == test::at(p - 1));
  }
  // Along a scan all ranks come by in two rounds, and in no other one.
  for (const bool in_place : {false, true}) {
    for (const Operation operation : {Operation::inclusive_scan, Operation::exclusive_scan}) {
      const Shape shape{operation, p, 0, in_place};
      int touched = 0;
      for (int k = 0; k < Direct::rounds(shape); ++k) touched += Direct::partners(shape, 500, k).empty() ? 0 : 1;
      CHECK(touched == 2);
      CHECK(Direct::by(shape, 99999, 4).size() <= 2);
    }
  }
}

TEST_CASE("direct schedules of many ranks") {
  for (const int p : {64, 100, 257}) {
    for (const Shape& shape : {Shape{Operation::all_reduce, p, 0, true}, Shape{Operation::reduce, p, p - 1, true},
                               Shape{Operation::gather, p, p / 2, true}, Shape{Operation::inclusive_scan, p, 0, true},
                               Shape{Operation::exclusive_scan, p, 0, true}}) {
      CHECK(verify(materialise<Direct>(shape)).ok());
    }
  }
  if (building::most_ranks < 1000) return;
  CHECK(verify(materialise<Direct>(Shape{Operation::all_reduce, 1000, 0, false})).canonical);
  CHECK(verify(materialise<Direct>(Shape{Operation::scatter, 1024, 1000, true})).ok());
}
