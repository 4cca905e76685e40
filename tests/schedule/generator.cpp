// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/generator.hpp"

#include <doctest/doctest.h>

#include <set>

#include "all_shapes.hpp"
#include "meshwise/schedule/direct.hpp"
#include "meshwise/schedule/one_shot.hpp"
#include "meshwise/schedule/ring.hpp"
#include "meshwise/schedule/two_shot.hpp"
#include "proxy.hpp"

using namespace meshwise;

namespace {

struct Nameless {
  static constexpr int rounds(const Shape&) { return 0; }
};
static_assert(!Generator<Nameless>);
static_assert(!Generator<int>);

}  // namespace

TEST_CASE_TEMPLATE("a rank's moves are its own and the partners are all who touch its buffers", G, Direct, Ring,
                   OneShot, TwoShot, test::Proxy) {
  for (int p = 1; p <= 9; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      if (!G::supports(shape)) continue;
      CAPTURE(test::describe(shape));
      const Schedule schedule = materialise<G>(shape);
      CHECK(schedule.shape == shape);
      CHECK(schedule.scratch_slots == G::scratch_slots(shape));
      REQUIRE(static_cast<int>(schedule.rounds.size()) == G::rounds(shape));
      for (int k = 0; k < G::rounds(shape); ++k) {
        std::size_t moves = 0;
        std::vector<std::set<int>> touching(static_cast<std::size_t>(p));
        for (int r = 0; r < p; ++r) {
          for (const Move& move : G::by(shape, r, k)) {
            CHECK(move.by == r);
            CHECK(schedule.rounds[static_cast<std::size_t>(k)][moves].block == move.block);
            ++moves;
            for (const auto* pieces : {&move.from, &move.to}) {
              for (const Piece& piece : *pieces) {
                if (piece.rank != r) touching[static_cast<std::size_t>(piece.rank)].insert(r);
              }
            }
          }
        }
        CHECK(moves == schedule.rounds[static_cast<std::size_t>(k)].size());
        for (int r = 0; r < p; ++r) {
          const std::vector<int> partners = G::partners(shape, r, k);
          const std::set<int> named(partners.begin(), partners.end());
          CHECK(named.size() == partners.size());
          CHECK(named.count(r) == 0);
          for (const int q : touching[static_cast<std::size_t>(r)]) CHECK(named.count(q) == 1);
          if (std::string(G::name) == "ring") CHECK(named == touching[static_cast<std::size_t>(r)]);
        }
      }
    }
  }
}

TEST_CASE_TEMPLATE("no generated move copies a slot onto itself", G, Direct, Ring, OneShot, TwoShot, test::Proxy) {
  for (int p = 1; p <= 9; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      if (!G::supports(shape)) continue;
      CAPTURE(test::describe(shape));
      for (const Round& round : materialise<G>(shape).rounds) {
        for (const Move& move : round) {
          CHECK(!move.to.empty());
          if (move.from.size() != 1) continue;
          // Whether the root of a reduce, gather or scatter is in place is not for the moves to know.
          Shape seen = shape;
          seen.in_place = shape.in_place && (!rooted(shape.operation) || shape.operation == Operation::broadcast);
          for (const Piece& to : move.to) CHECK(place(seen, to) != place(seen, move.from[0]));
        }
      }
    }
  }
}

TEST_CASE("an unsupported shape is an error that names both sides") {
  try {
    materialise<Direct>(Shape{Operation::all_to_all, 4, 0, true});
    FAIL("must throw");
  } catch (const Error& error) {
    CHECK(error.code() == Code::invalid_argument);
    const std::string what = error.what();
    CHECK(what.find("materialise") != std::string::npos);
    CHECK(what.find("direct supports") != std::string::npos);
    CHECK(what.find("all_to_all in place on 4 ranks") != std::string::npos);
  }
  CHECK_THROWS_AS(materialise<Ring>(Shape{Operation::all_reduce, 0, 0, false}), Error);
  CHECK_THROWS_AS(materialise<Ring>(Shape{Operation::broadcast, 3, 3, false}), Error);
}
