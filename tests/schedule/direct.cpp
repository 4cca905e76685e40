// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/direct.hpp"

#include <doctest/doctest.h>

#include "all_shapes.hpp"
#include "meshwise/schedule/verify.hpp"

using namespace meshwise;

namespace {

constexpr bool proven(Operation operation, bool in_place, int ranks) {
  const Verdict verdict = verify(materialise<Direct>(Shape{operation, ranks, 0, in_place}));
  return verdict.ok() && verdict.left_fold_in_rank_order;
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

}  // namespace

TEST_CASE("direct schedules are right, in rank order, and move what the formulas say") {
  for (int p = 1; p <= 33; ++p) {
    const std::int64_t n = p - 1;
    for (const Shape& shape : test::all_shapes(p)) {
      CAPTURE(test::describe(shape));
      const Verdict verdict = verify(materialise<Direct>(shape));
      REQUIRE_MESSAGE(verdict.ok(), text(verdict.fault));
      CHECK(verdict.left_fold_in_rank_order);
      CHECK(verdict.rounds == 1);
      std::int64_t messages = p * n;
      switch (shape.operation) {
        case Operation::all_reduce:
          CHECK(verdict.read == Count{p * n, n});
          CHECK(verdict.written == Count{p * n, n});
          break;
        case Operation::reduce_scatter:
        case Operation::all_to_all:
          CHECK(verdict.read == Count{p * n, n});
          CHECK(verdict.written == Count{0, 0});
          break;
        case Operation::all_gather:
          CHECK(verdict.read == Count{0, 0});
          CHECK(verdict.written == Count{p * n, n});
          break;
        case Operation::broadcast:
          // In place nobody has to write to the root.
          messages = shape.in_place ? n * n : p * n;
          CHECK(verdict.read == Count{n, p > 1 ? 1 : 0});
          CHECK(verdict.written == Count{messages, n});
          break;
      }
      CHECK(verdict.messages == messages);
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
