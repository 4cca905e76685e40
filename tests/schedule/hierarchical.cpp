// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/hierarchical.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cstdlib>
#include <set>
#include <utility>
#include <vector>

#include "../support/sanitized.hpp"
#include "generator_laws.hpp"

using namespace meshwise;

namespace {

using Begins = std::vector<std::vector<int>>;

constexpr bool proven(const std::vector<int>& level, const std::vector<int>& above, int widest_direct,
                      const Shape& shape) {
  Begins begins;
  begins.push_back(level);
  begins.push_back(above);
  return verify(materialise(Hierarchical(begins, widest_direct), shape)).ok();
}

static_assert(proven({0, 3}, {0}, 16, Shape{Operation::all_reduce, 5, 0, true}));
static_assert(proven({0, 1, 2}, {0, 2}, 16, Shape{Operation::reduce_scatter, 7, 0, false}));
static_assert(proven({0, 3}, {0}, 1, Shape{Operation::broadcast, 5, 4, false}));

constexpr Operation operations[] = {Operation::all_reduce, Operation::reduce_scatter, Operation::all_gather,
                                    Operation::broadcast, Operation::reduce};

/// The group of a level that a rank belongs to; the level above all has one group.
int group_of(const Begins& begins, std::size_t level, int rank) {
  if (level >= begins.size()) return 0;
  int group = 0;
  while (test::at(group + 1) < begins[level].size() && begins[level][test::at(group + 1)] <= rank) ++group;
  return group;
}

/// The blocks that cross between the children of groups of a level, the level of all ranks included.
std::vector<std::int64_t> crossings(const Begins& begins, const Schedule& schedule) {
  std::vector<std::int64_t> crossed(begins.size() + 1, 0);
  for (const Round& round : schedule.rounds) {
    for (const Move& move : round) {
      for (const Piece& piece : move.from) {
        if (piece.rank == move.by) continue;
        std::size_t level = 0;
        while (group_of(begins, level, piece.rank) != group_of(begins, level, move.by)) ++level;
        crossed[level] += piece.count;
      }
    }
  }
  return crossed;
}

/// Over all groups of a level: how many children they have, less one each.
std::vector<std::int64_t> edges(const Begins& begins, int ranks) {
  std::vector<std::int64_t> result;
  std::int64_t below = ranks;
  for (const std::vector<int>& level : begins) {
    result.push_back(below - static_cast<std::int64_t>(level.size()));
    below = static_cast<std::int64_t>(level.size());
  }
  result.push_back(below - 1);
  return result;
}

int rounds_once(const Begins& begins, int ranks, int widest_direct) {
  int sum = 0;
  for (std::size_t level = 0; level <= begins.size(); ++level) {
    std::vector<std::set<int>> children(test::at(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      children[test::at(group_of(begins, level, rank))].insert(level == 0 ? rank : group_of(begins, level - 1, rank));
    }
    std::size_t most = 0;
    for (const std::set<int>& c : children) most = std::max(most, c.size());
    if (most > 1) sum += static_cast<int>(most) <= widest_direct ? 1 : static_cast<int>(std::bit_width(most - 1));
  }
  return sum;
}

void check(const Begins& begins, const Shape& shape, int widest_direct) {
  CAPTURE(test::describe(shape));
  const Hierarchical generator(begins, widest_direct);
  REQUIRE(generator.supports(shape));
  const Schedule schedule = materialise(generator, shape);
  const Verdict verdict = verify(schedule);
  REQUIRE_MESSAGE(verdict.ok(), text(verdict.fault));
  CHECK(verdict.identical_on_all_ranks);
  CHECK(verdict.written == Count{0, 0});
  if (shape.ranks == 1) return;
  if (widest_direct >= shape.ranks) CHECK(verdict.in_rank_order);
  const int once = rounds_once(begins, shape.ranks, widest_direct);
  const bool twice = shape.operation == Operation::all_reduce;
  CHECK(verdict.rounds == (twice ? 2 * once : rooted(shape.operation) ? once + 1 : once));
  // Every edge of every level carries every block once, or once in each direction.
  const std::vector<std::int64_t> crossed = crossings(begins, schedule);
  const std::vector<std::int64_t> least = edges(begins, shape.ranks);
  const std::int64_t p = shape.ranks;
  for (std::size_t level = 0; level < crossed.size(); ++level) {
    CAPTURE(level);
    const std::int64_t wanted = (twice ? 2 : 1) * least[level] * p;
    if (shape.operation != Operation::reduce) {
      CHECK(crossed[level] == wanted);
    } else {
      CHECK((crossed[level] >= wanted && crossed[level] <= wanted + p));
    }
  }
}

/// Trees that matter: even, uneven, nodes of one rank, levels that add nothing, several levels.
struct Case {
  int ranks;
  Begins begins;
};
const std::vector<Case>& cases() {
  static const std::vector<Case> list = {
      {1, {}},
      {1, {{0}}},
      {5, {}},
      {6, {{0, 3}}},
      {8, {{0, 4}}},
      {12, {{0, 3, 6, 9}}},
      {15, {{0, 7}}},
      {17, {{0, 1}}},
      {17, {{0, 16}}},
      {6, {{0, 1, 2, 3, 4, 5}}},
      {9, {{0}}},
      {10, {{0, 1, 2, 6, 9}}},
      {8, {{0, 2, 4, 6}, {0, 4}}},
      {13, {{0, 2, 5, 6, 10, 11}, {0, 5, 10}}},
      {13, {{0, 2, 5, 6, 10, 11}, {0, 6}}},
      {24, {{0, 4, 8, 12, 16, 20}, {0, 12}}},
      {19, {{0, 1, 2, 3, 8, 12, 13}, {0, 3, 12}, {0, 12}, {0}}},
  };
  return list;
}

/// A random tree on `ranks` ranks.
Begins random_tree(int ranks, test::Dice& dice) {
  Begins begins;
  std::vector<int> level;
  const int levels = dice.roll(4);
  for (int rank = 0; rank < ranks; ++rank) level.push_back(rank);
  for (int l = 0; l < levels; ++l) {
    const int sides = 1 + dice.roll(5);
    std::vector<int> next;
    for (const int first : level) {
      if (first == 0 || dice.roll(sides) == 0) next.push_back(first);
    }
    begins.push_back(next);
    level = next;
  }
  return begins;
}

}  // namespace

TEST_CASE("hierarchical schedules are right and cross between groups as little as possible") {
  for (const Case& c : cases()) {
    for (const int widest_direct : {1, 3, 100}) {
      for (const Shape& shape : test::sampled_shapes(c.ranks)) {
        if (Hierarchical(c.begins).supports(shape)) check(c.begins, shape, widest_direct);
      }
    }
  }
}

TEST_CASE("hierarchical schedules of random trees") {
  test::Dice dice{3};
  for (int p = 1; p <= 33; ++p) {
    for (int trial = 0; trial < 4; ++trial) {
      const Begins begins = random_tree(p, dice);
      const int widest_direct = trial % 2 == 0 ? 100 : 1 + dice.roll(4);
      for (const Operation operation : operations) {
        const int root = rooted(operation) ? dice.roll(p) : 0;
        check(begins, Shape{operation, p, root, dice.roll(2) == 0}, widest_direct);
      }
    }
  }
}

TEST_CASE("hierarchical schedules of many ranks") {
  Begins even(2);
  for (int first = 0; first < 64; first += 8) even[0].push_back(first);
  for (int first = 0; first < 64; first += 32) even[1].push_back(first);
  Begins uneven(1);
  for (int first = 0, size = 1; first < 257; first += size, size = size % 13 + 1) uneven[0].push_back(first);
  for (const Operation operation : operations) {
    check(even, Shape{operation, 64, rooted(operation) ? 21 : 0, true}, 16);
    check(uneven, Shape{operation, 257, rooted(operation) ? 99 : 0, false}, 16);
  }
}

TEST_CASE("a circulant level over a direct one, on very many ranks") {
  const int ranks = building::sanitized ? 200 : 1000;
  Begins wide(1);
  for (int first = 0; first < ranks; first += 8) wide[0].push_back(first);
  check(wide, Shape{Operation::reduce_scatter, ranks, 0, false}, 16);
}

TEST_CASE("two even levels share the work evenly, in few long pieces") {
  // 8 nodes of 4 ranks: 3 + 7 / 8 blocks of a rank's quarter, up and down.
  const Begins begins = {{0, 4, 8, 12, 16, 20, 24, 28}};
  const Shape shape{Operation::all_reduce, 32, 0, false};
  const Verdict verdict = verify(materialise(Hierarchical(begins), shape));
  CHECK(verdict.read == Count{32 * 2 * 31, 2 * 31});
  CHECK(verdict.rounds == 4);
  for (int rank = 0; rank < 32; ++rank) {
    CHECK(Hierarchical(begins).by(shape, rank, 0).size() == 1);
    CHECK(Hierarchical(begins).by(shape, rank, 1).size() == 1);
    CHECK(Hierarchical(begins).by(shape, rank, 2).size() == 7);
    CHECK(Hierarchical(begins).by(shape, rank, 3).size() == 3);
  }
}

TEST_CASE("uneven nodes share the work as far as their sizes allow") {
  for (const std::pair<int, int>& sizes : {std::pair{15, 7}, std::pair{17, 1}, std::pair{17, 16}, std::pair{30, 10}}) {
    const int ranks = sizes.first;
    const int first = sizes.second;
    const Begins begins = {{0, first}};
    const Shape shape{Operation::all_reduce, ranks, 0, false};
    const Schedule schedule = materialise(Hierarchical(begins, 100), shape);
    // Blocks that each node takes in from the other one: half of them on the way up, the other half on the way down.
    std::vector<int> in(2, 0);
    for (const Move& move : schedule.rounds[1]) {
      for (const Piece& piece : move.from) {
        if ((piece.rank < first) != (move.by < first)) in[move.by < first ? 0 : 1] += piece.count;
      }
    }
    CAPTURE(ranks);
    CAPTURE(first);
    CHECK(in[0] + in[1] == ranks);
    CHECK(std::abs(in[0] - in[1]) <= 2);
  }
}

TEST_CASE("hierarchical partners name whoever touches a buffer") {
  for (const Case& c : cases()) {
    if (c.ranks > 13) continue;
    for (const int widest_direct : {1, 100}) {
      const Hierarchical generator(c.begins, widest_direct);
      for (const Shape& shape : test::sampled_shapes(c.ranks)) {
        if (!generator.supports(shape)) continue;
        const int surplus = test::check_partners(generator, shape);
        if (shape.operation != Operation::broadcast) CHECK(surplus == 0);
      }
    }
  }
}

TEST_CASE("a rank of very many asks for its own moves only") {
  Begins begins(2);
  for (int first = 0; first < 100000; first += 8) begins[0].push_back(first);
  for (int first = 0; first < 100000; first += 1024) begins[1].push_back(first);
  const Hierarchical generator(begins, 16);
  for (const Operation operation : {Operation::all_reduce, Operation::broadcast, Operation::reduce}) {
    const Shape shape{operation, 100000, rooted(operation) ? 4321 : 0, true};
    test::check_partners_of(generator, shape, {0, 7, 8, 1024, 4320, 4328, 65536, 99999});
  }
}

TEST_CASE("hierarchical moves of a reduce are the same in and out of place") {
  for (const Case& c : cases()) test::check_same_in_place(Hierarchical(c.begins), Operation::reduce, c.ranks);
}

TEST_CASE("hierarchical plans and messages run") {
  for (const Case& c : cases()) {
    if (c.ranks > 10) continue;
    test::check_plans(Hierarchical(c.begins), {c.ranks});
    test::check_plans(Hierarchical(c.begins, 1), {c.ranks});
  }
}

TEST_CASE("groups that are none are refused") {
  CHECK_THROWS_AS(Hierarchical(Begins(1)), Error);
  CHECK_THROWS_AS(Hierarchical(Begins{{1, 3}}), Error);
  CHECK_THROWS_AS(Hierarchical(Begins{{0, 3, 3}}), Error);
  CHECK_THROWS_AS(Hierarchical(Begins{{0, 3, 2}}), Error);
  CHECK_THROWS_AS(Hierarchical(Begins{{0, 3}, {0, 2}}), Error);
  CHECK(!Hierarchical(Begins{{0, 3}}).supports(Shape{Operation::all_reduce, 3, 0, false}));
  CHECK(Hierarchical(Begins{{0, 3}}).supports(Shape{Operation::all_reduce, 4, 0, false}));
  CHECK(!Hierarchical(Begins{{0, 3}}).supports(Shape{Operation::all_to_all, 4, 0, false}));
}
