// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/exchange.hpp"

#include <doctest/doctest.h>

#include <numeric>

#include "generator_laws.hpp"
#include "meshwise/schedule/redistribution.hpp"

using namespace meshwise;

namespace {

using Lists = std::vector<std::vector<int>>;

Shape shape_of(const Routes& routes) { return Shape{Operation::exchange, routes.ranks(), 0, false, &routes}; }

/// Routes over some blocks, each held by up to `copies` ranks; some ranks hold nothing, some want nothing, some want a
/// block twice; the slots of a rank are in any order.
Routes random_routes(test::Dice& dice, int ranks, int blocks, int copies) {
  Lists held(test::at(ranks));
  Lists wanted(test::at(ranks));
  const int givers = 1 + dice.roll(ranks);
  for (int block = 0; block < blocks; ++block) {
    std::set<int> holders;
    for (int i = 1 + dice.roll(copies); i > 0; --i) holders.insert((dice.roll(givers) * 2) % ranks);
    for (const int holder : holders) held[test::at(holder)].push_back(block);
  }
  for (int rank = 0; rank < ranks; ++rank) {
    const int wishes = dice.roll(4) == 0 ? 0 : dice.roll(2 * blocks + 1);
    int block = 0;
    for (int i = 0; i < wishes && blocks > 0; ++i) {
      block = dice.roll(3) == 0 ? dice.roll(blocks) : (block + 1) % blocks;
      wanted[test::at(rank)].push_back(block);
    }
    std::vector<int>& own = held[test::at(rank)];
    for (int i = static_cast<int>(own.size()) - 1; i > 0 && rank % 2 == 0; --i) {
      std::swap(own[test::at(i)], own[test::at(dice.roll(i + 1))]);
    }
  }
  return Routes(blocks, held, wanted);
}

/// Every wanted slot that its rank does not hold is read once; nothing else crosses.
std::int64_t lacking(const Routes& routes) {
  std::int64_t count = 0;
  for (std::size_t rank = 0; rank < routes.wanted.size(); ++rank) {
    const std::vector<int>& own = routes.held[rank];
    for (const int block : routes.wanted[rank]) count += std::find(own.begin(), own.end(), block) == own.end() ? 1 : 0;
  }
  return count;
}

/// How many blocks each rank serves to others.
std::vector<int> served(const Routes& routes) {
  const Shape shape = shape_of(routes);
  std::vector<int> result(test::at(shape.ranks), 0);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    for (const Move& move : Exchange::by(shape, rank, 0)) {
      if (move.from[0].rank != rank) result[test::at(move.from[0].rank)] += move.from[0].count;
    }
  }
  return result;
}

constexpr bool proven_small() {
  const Redistribution made = routes_between({3, 0, 4}, {1, 5, 1});
  const Shape shape{Operation::exchange, 3, 0, false, &made.routes};
  const Verdict verdict = verify(materialise<Exchange>(shape));
  return verdict.ok() && verdict.read == Count{2, 2} && made.sizes.size() == 4;
}
static_assert(proven_small());
static_assert(!Exchange::supports(Shape{Operation::all_to_all, 2, 0, false}));
static_assert(!Exchange::supports(Shape{Operation::exchange, 2, 0, false}));

}  // namespace

TEST_CASE("an exchange brings every block where it is wanted, and only what is lacking crosses") {
  test::Dice dice{7};
  for (int trial = 0; trial < 400; ++trial) {
    const int ranks = 1 + trial % 9;
    const int sizes[] = {0, 1, 2, 3, 5, 8, 40};
    const Routes routes = random_routes(dice, ranks, sizes[dice.roll(7)], 1 + dice.roll(ranks));
    const Shape shape = shape_of(routes);
    REQUIRE(Exchange::supports(shape));
    CAPTURE(trial);
    const Verdict verdict = verify(materialise<Exchange>(shape));
    REQUIRE_MESSAGE(verdict.ok(), text(verdict.fault));
    CHECK(verdict.rounds == 1);
    CHECK(verdict.read.total == lacking(routes));
    CHECK(verdict.written == Count{0, 0});
    CHECK(test::check_partners(Exchange{}, shape) == 0);
    if (trial % 4 != 0) continue;
    for (const int lanes : {1, 3}) CHECK(test::runs(Exchange{}, shape, lanes, dice, 1));
  }
  for (const int ranks : {17, 33, 100}) {
    const Routes routes = random_routes(dice, ranks, 3 * ranks, 5);
    const Verdict verdict = verify(materialise<Exchange>(shape_of(routes)));
    REQUIRE_MESSAGE(verdict.ok(), text(verdict.fault));
    CHECK(verdict.read.total == lacking(routes));
  }
}

TEST_CASE("consecutive blocks from one place are one move; moves begin at home and go up the ranks") {
  const int p = 5;
  Lists held(p);
  Lists wanted(p);
  for (int rank = 0; rank < p; ++rank) {
    for (int i = 0; i < 8; ++i) held[test::at(rank)].push_back(rank * 8 + i);
    for (int block = 0; block < 8 * p; ++block) wanted[test::at(rank)].push_back(block);
  }
  const Routes routes(8 * p, held, wanted);
  for (int rank = 0; rank < p; ++rank) {
    const std::vector<Move> moves = Exchange::by(shape_of(routes), rank, 0);
    REQUIRE(moves.size() == p);
    for (int i = 0; i < p; ++i) {
      const int source = (rank + i) % p;
      CHECK(moves[test::at(i)].from[0] == Piece{source, Buffer::input, 0, 8});
      CHECK(moves[test::at(i)].to[0] == Piece{rank, Buffer::output, source * 8, 8});
      CHECK(moves[test::at(i)].block == source * 8);
    }
  }
}

TEST_CASE("takers are spread over the holders of a block") {
  // Replicated on a ranks, split over b; then replicated on b, split over a. In rank order, and with the axes swapped.
  const std::pair<int, int> meshes[] = {{2, 2}, {2, 4}, {4, 2}, {4, 4}, {3, 5}, {8, 8}, {2, 16}, {16, 2}};
  for (const auto& mesh : meshes) {
    const int a = mesh.first;
    const int b = mesh.second;
    for (const bool swapped : {false, true}) {
      CAPTURE(a);
      CAPTURE(b);
      CAPTURE(swapped);
      const int p = a * b;
      const int blocks = p;
      Lists held(test::at(p));
      Lists wanted(test::at(p));
      for (int i = 0; i < a; ++i) {
        for (int j = 0; j < b; ++j) {
          const int rank = swapped ? j * a + i : i * b + j;
          for (int k = 0; k < a; ++k) held[test::at(rank)].push_back(j * a + k);
          for (int k = 0; k < b; ++k) wanted[test::at(rank)].push_back(i * b + k);
        }
      }
      const Routes routes(blocks, held, wanted);
      REQUIRE(verify(materialise<Exchange>(shape_of(routes))).ok());
      const std::vector<int> load = served(routes);
      const int total = std::accumulate(load.begin(), load.end(), 0);
      CHECK(total == lacking(routes));
      // The fair share, and a little more, since takers that hold a block themselves have a turn too.
      CHECK(*std::max_element(load.begin(), load.end()) <= total / p + 2);
    }
  }
  // Replicated over an axis of n, then split over it too: every block has one taker, and n holders.
  for (const int n : {2, 3, 4, 8}) {
    for (const int outer : {1, 2, 4, 8}) {
      CAPTURE(n);
      CAPTURE(outer);
      const int p = n * outer;
      Lists held(test::at(p));
      Lists wanted(test::at(p));
      for (int i = 0; i < outer; ++i) {
        for (int j = 0; j < n; ++j) {
          for (int k = 0; k < n; ++k) held[test::at(i * n + j)].push_back(i * n + k);
          wanted[test::at(i * n + j)].push_back(j * outer + i);
        }
      }
      const Routes routes(p, held, wanted);
      REQUIRE(verify(materialise<Exchange>(shape_of(routes))).ok());
      const std::vector<int> load = served(routes);
      CHECK(*std::max_element(load.begin(), load.end()) <= 2);
    }
  }
}

TEST_CASE("an exchange among very many ranks asks for its own part only") {
  const int p = 100000;
  Lists held(test::at(p));
  Lists wanted(test::at(p));
  for (int rank = 0; rank < p; ++rank) {
    held[test::at(rank)].push_back(rank);
    wanted[test::at(rank)] = {0, (rank + 1) % p};  // everybody wants block 0, which one rank holds
  }
  const Routes routes(p, held, wanted);
  const Shape shape = shape_of(routes);
  for (const int rank : {1, 500, 99999}) {
    CHECK(Exchange::partners(shape, rank, 0) == std::vector<int>{rank - 1});
    CHECK(Exchange::by(shape, rank, 0).size() == 2);
  }
  CHECK(Exchange::partners(shape, 0, 0).size() == p - 1);
}
