// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/knomial.hpp"

#include <doctest/doctest.h>

#include <string>

#include "../support/sanitized.hpp"
#include "generator_laws.hpp"

using namespace meshwise;

namespace {

template <int radix>
constexpr bool proven(Operation operation, int ranks, int root) {
  return verify(materialise<Knomial<radix>>(Shape{operation, ranks, root, false})).ok();
}

static_assert(proven<2>(Operation::broadcast, 7, 3) && proven<3>(Operation::broadcast, 7, 3));
static_assert(proven<2>(Operation::reduce, 7, 3) && proven<4>(Operation::reduce, 7, 3));
static_assert(proven<2>(Operation::gather, 7, 3) && proven<2>(Operation::scatter, 7, 3));

int levels(int radix, int p) {
  int count = 0;
  for (int reach = 1; reach < p; reach *= radix) ++count;
  return count;
}

/// The sum over all ranks but the root of the size of the sub-tree: the blocks of a gather.
std::int64_t carried(int radix, int p) {
  std::int64_t sum = 0;
  for (int place = 1; place < p; ++place) {
    int size = 1;
    while (place % (size * radix) == 0) size *= radix;
    sum += std::min(size, p - place);
  }
  return sum;
}

template <int radix>
void counts(const Shape& shape, const Verdict& verdict) {
  const std::int64_t p = shape.ranks;
  const std::int64_t inner = levels(radix, shape.ranks);
  CHECK(verdict.written == Count{0, 0});
  CHECK(verdict.messages == p - 1);
  if (p > 1) CHECK(verdict.rounds == inner);
  if (shape.operation == Operation::broadcast || shape.operation == Operation::reduce) {
    CHECK(verdict.read.total == p * (p - 1));
  } else {
    CHECK(verdict.read.total == carried(radix, shape.ranks));
    CHECK(verdict.read.most == (shape.operation == Operation::gather ? p - 1 : verdict.read.most));
  }
  if (shape.operation == Operation::broadcast) CHECK(verdict.read.most == (p > 1 ? p : 0));
  if (radix == 2 && shape.operation == Operation::reduce) CHECK(verdict.read.most == inner * p);
}

}  // namespace

TEST_CASE_TEMPLATE("k-nomial trees are right and move what the formulas say", G, Binomial, Knomial<3>, Knomial<4>,
                   Knomial<8>) {
  const G generator;
  constexpr int radix = std::is_same_v<G, Binomial>     ? 2
                        : std::is_same_v<G, Knomial<3>> ? 3
                        : std::is_same_v<G, Knomial<4>> ? 4
                                                        : 8;
  for (int p = 1; p <= 33; ++p) {
    for (const Shape& shape : test::sampled_shapes(p)) {
      if (!generator.supports(shape)) continue;
      CAPTURE(test::describe(shape));
      const Verdict verdict = verify(materialise(generator, shape));
      REQUIRE_MESSAGE(verdict.ok(), text(verdict.fault));
      counts<radix>(shape, verdict);
    }
  }
  for (const int p : {64, 100, 257, radix == 2 ? 1024 : 243, radix == 4 ? 1000 : 65}) {
    if (p > building::most_ranks) continue;
    for (const Operation operation : {Operation::broadcast, Operation::reduce, Operation::gather, Operation::scatter}) {
      const Shape shape{operation, p, p / 3, true};
      CAPTURE(test::describe(shape));
      const Verdict verdict = verify(materialise(generator, shape));
      REQUIRE_MESSAGE(verdict.ok(), text(verdict.fault));
      counts<radix>(shape, verdict);
    }
  }
}

TEST_CASE_TEMPLATE("k-nomial partners name whoever touches a buffer", G, Binomial, Knomial<4>) {
  const G generator;
  for (int p = 1; p <= 18; ++p) {
    for (const Shape& shape : test::sampled_shapes(p)) {
      if (generator.supports(shape)) test::check_partners(generator, shape);
    }
  }
  for (const Operation operation : {Operation::broadcast, Operation::reduce, Operation::gather, Operation::scatter}) {
    test::check_partners_of(generator, Shape{operation, 100000, 7, true}, {0, 7, 8, 23, 40000, 99999});
  }
}

TEST_CASE("k-nomial moves are the same in and out of place, except for a broadcast") {
  for (int p = 1; p <= 17; ++p) {
    for (const Operation operation : {Operation::reduce, Operation::gather, Operation::scatter}) {
      test::check_same_in_place(Binomial{}, operation, p);
      test::check_same_in_place(Knomial<4>{}, operation, p);
    }
  }
}

TEST_CASE("k-nomial plans and messages run") {
  test::check_plans(Binomial{});
  test::check_plans(Knomial<4>{});
}

TEST_CASE("a reduce to rank 0 keeps the ranks in order") {
  for (const int p : {2, 3, 7, 8, 13, 33}) {
    CHECK(verify(materialise<Binomial>(Shape{Operation::reduce, p, 0, false})).in_rank_order);
    CHECK(verify(materialise<Knomial<4>>(Shape{Operation::reduce, p, 0, false})).in_rank_order);
  }
  CHECK(!verify(materialise<Binomial>(Shape{Operation::reduce, 7, 3, false})).in_rank_order);
}

TEST_CASE("scratch is what the largest sub-tree needs, and no more") {
  for (int p = 1; p <= 70; ++p) {
    for (const Operation operation : {Operation::reduce, Operation::gather, Operation::scatter}) {
      CAPTURE(p);
      CHECK(test::scratch_used(Binomial{}, Shape{operation, p, p / 2, false}) ==
            Binomial::scratch_slots(Shape{operation, p, p / 2, false}));
      CHECK(test::scratch_used(Knomial<4>{}, Shape{operation, p, p / 2, false}) ==
            Knomial<4>::scratch_slots(Shape{operation, p, p / 2, false}));
    }
  }
}

TEST_CASE("names say the radix") {
  CHECK(std::string(Binomial::name) == "binomial");
  CHECK(std::string(Knomial<4>::name) == "knomial4");
  CHECK(std::string(Knomial<16>::name) == "knomial16");
}
