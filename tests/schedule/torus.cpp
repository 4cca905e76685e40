// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/torus.hpp"

#include <doctest/doctest.h>

#include <tuple>
#include <utility>
#include <vector>

#include "../support/sanitized.hpp"
#include "generator_laws.hpp"

using namespace meshwise;

namespace {

constexpr bool proven(const Torus& torus, Operation operation, bool in_place, int ranks) {
  return verify(materialise(torus, Shape{operation, ranks, 0, in_place})).ok();
}

static_assert(proven(Torus{{2, 3}}, Operation::all_reduce, false, 6));
static_assert(proven(Torus{{3, 2}}, Operation::reduce_scatter, true, 6));
static_assert(proven(Torus{{2, 2, 2}}, Operation::all_gather, false, 8));
static_assert(proven(Torus{{}}, Operation::all_reduce, false, 1));

constexpr Operation operations[] = {Operation::all_reduce, Operation::reduce_scatter, Operation::all_gather};

/// Every way to write `ranks` as an ordered product of factors from 2 on.
std::vector<std::vector<int>> factorings(int ranks) {
  std::vector<std::vector<int>> result;
  if (ranks == 1) result.push_back({});
  for (int first = 2; first <= ranks; ++first) {
    if (ranks % first != 0) continue;
    for (std::vector<int> rest : factorings(ranks / first)) {
      rest.insert(rest.begin(), first);
      result.push_back(rest);
    }
  }
  return result;
}

void check(const Torus& torus, const Shape& shape) {
  CAPTURE(test::describe(shape));
  CAPTURE(torus.dims.size());
  REQUIRE(torus.supports(shape));
  const Schedule schedule = materialise(torus, shape);
  const Verdict verdict = verify(schedule);
  REQUIRE_MESSAGE(verdict.ok(), text(verdict.fault));
  CHECK(verdict.identical_on_all_ranks);
  const std::int64_t p = shape.ranks;
  const int times = shape.operation == Operation::all_reduce ? 2 : 1;
  CHECK(verdict.written == Count{0, 0});
  CHECK(verdict.read == Count{times * p * (p - 1), times * (p - 1)});
  int sum = 0;
  for (const int extent : torus.dims) sum += extent - 1;
  if (p > 1) CHECK(verdict.rounds == times * sum);
  if (p > 1) CHECK(verdict.messages == times * sum * p);
}

}  // namespace

TEST_CASE("torus schedules are right and move what the formulas say, for every factoring") {
  for (int p = 1; p <= 33; ++p) {
    for (const std::vector<int>& dims : factorings(p)) {
      for (const Operation operation : operations) {
        for (const bool in_place : {false, true}) check(Torus{dims}, Shape{operation, p, 0, in_place});
      }
    }
  }
  for (const Operation operation : operations) {
    check(Torus{{4, 4, 4}}, Shape{operation, 64, 0, false});
    check(Torus{{10, 10}}, Shape{operation, 100, 0, true});
    check(Torus{{257}}, Shape{operation, 257, 0, true});
  }
  if (building::most_ranks < 1024) return;
  check(Torus{{10, 5, 20}}, Shape{Operation::reduce_scatter, 1000, 0, false});
  check(Torus{{16, 4, 16}}, Shape{Operation::all_reduce, 1024, 0, false});
}

TEST_CASE("dims of extent 1 change nothing") {
  for (const Operation operation : operations) {
    for (const bool in_place : {false, true}) {
      check(Torus{{1, 3, 1, 4, 1}}, Shape{operation, 12, 0, in_place});
      check(Torus{{1, 1}}, Shape{operation, 1, 0, in_place});
    }
  }
}

TEST_CASE("a torus supports what it was made for") {
  const Torus torus{{2, 3}};
  CHECK(torus.supports(Shape{Operation::all_reduce, 6, 0, false}));
  CHECK(!torus.supports(Shape{Operation::all_reduce, 5, 0, false}));
  CHECK(!torus.supports(Shape{Operation::all_reduce, 12, 0, false}));
  CHECK(!torus.supports(Shape{Operation::broadcast, 6, 0, false}));
  CHECK(!Torus{{6, 0}}.supports(Shape{Operation::all_reduce, 6, 0, false}));
  CHECK(!Torus{{-2, -3}}.supports(Shape{Operation::all_reduce, 6, 0, false}));
  CHECK(!Torus{{65536, 65536}}.supports(Shape{Operation::all_reduce, 1, 0, false}));
  CHECK_THROWS_AS(compile(torus, Shape{Operation::all_reduce, 7, 0, false}, 0), Error);
}

TEST_CASE("torus moves stay between neighbours of one dim, one piece a round") {
  const Torus torus{{3, 4, 2}};
  for (const Operation operation : operations) {
    for (const Round& round : materialise(torus, Shape{operation, 24, 0, true}).rounds) {
      CHECK(round.size() == 24);
      for (const Move& move : round) {
        const int left = move.from[0].rank;
        int apart = 0;
        for (const auto& [stride, extent] : {std::pair{8, 3}, std::pair{2, 4}, std::pair{1, 2}}) {
          const int step = (move.by / stride - left / stride) % extent;
          apart += (step + extent) % extent;
        }
        CHECK(apart == 1);
      }
    }
  }
}

TEST_CASE("torus scratch is used, and none is left") {
  for (const std::vector<int>& dims : std::vector<std::vector<int>>{{2}, {3}, {4}, {2, 3}, {3, 2}, {4, 3}, {2, 2, 2}}) {
    int p = 1;
    for (const int extent : dims) p *= extent;
    for (const Operation operation : operations) {
      const Shape shape{operation, p, 0, false};
      CHECK(test::scratch_used(Torus{dims}, shape) == Torus{dims}.scratch_slots(shape));
    }
  }
}

TEST_CASE("torus partners name whoever touches a buffer, and nobody else") {
  for (int p = 1; p <= 18; ++p) {
    for (const std::vector<int>& dims : factorings(p)) {
      for (const Operation operation : operations) {
        CHECK(test::check_partners(Torus{dims}, Shape{operation, p, 0, false}) == 0);
      }
    }
  }
  const Torus torus{{10, 100, 100}};
  for (const Operation operation : operations) {
    test::check_partners_of(torus, Shape{operation, 100000, 0, true}, {0, 7, 99, 100, 40000, 99999});
  }
}

TEST_CASE("alike rounds move as many blocks over the same distance") {
  const Torus torus{{3, 1, 4, 2}};
  for (const Operation operation : operations) {
    for (const bool in_place : {false, true}) {
      const Shape shape{operation, 24, 0, in_place};
      const auto look = [&](int round) {
        const std::vector<Move> moves = torus.by(shape, 5, round);
        return std::tuple(moves.size(), moves[0].from[0].count, torus.partners(shape, 5, round));
      };
      for (int k = 0; k < torus.rounds(shape);) {
        const int same = torus.alike(shape, k);
        REQUIRE((same >= 1 && k + same <= torus.rounds(shape)));
        for (int i = 1; i < same; ++i) CHECK(look(k) == look(k + i));
        k += same;
      }
    }
  }
  CHECK(torus.alike(Shape{Operation::all_reduce, 24, 0, true}, 0) == 2);
}

TEST_CASE("torus plans and messages run") {
  test::check_plans(Torus{{3}}, {3});
  test::check_plans(Torus{{2, 3}}, {6});
  test::check_plans(Torus{{3, 1, 3}}, {9});
  test::check_plans(Torus{{2, 2, 2}}, {8});
}
