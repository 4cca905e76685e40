// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/cost.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "../support/sanitized.hpp"
#include "all_shapes.hpp"
#include "meshwise/schedule/catalogue.hpp"
#include "meshwise/schedule/lower.hpp"

using namespace meshwise;

namespace {

constexpr double alpha = 3e-6;
constexpr double beta = 7e-10;
constexpr double gamma_ = 2e-10;
const std::uint64_t sizes[] = {0, 1, 2, 3, 5, 7, 8, 64, 1000, 65537, std::uint64_t{1} << 34};

Topology flat(int ranks) { return Topology(ranks, {}, Link{alpha, beta, 0}, {}, gamma_); }

int ceil_lg(int p) {
  int k = 0;
  while ((1 << k) < p) ++k;
  return k;
}

bool near(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

/// a messages one behind the other, b vectors received, c vectors combined.
struct Formula {
  double a;
  double b;
  double c;
  double operator()(std::uint64_t bytes) const {
    return a * alpha + b * static_cast<double>(bytes) * beta + c * static_cast<double>(bytes) * gamma_;
  }
};

template <class G>
void check_formula(Operation operation, int p, int root, Formula formula) {
  const Shape shape{operation, p, root, rooted(operation)};
  const Topology topology = flat(p);
  for (const std::uint64_t bytes : sizes) {
    const Cost found = cost(G{}, shape, bytes, topology);
    CAPTURE(G::name);
    CAPTURE(test::describe(shape));
    CAPTURE(bytes);
    REQUIRE(found.walked);
    CHECK(found.seconds == doctest::Approx(formula(bytes)).epsilon(1e-9));
  }
}

/// A generator without its `alike`: every round is walked.
template <class G>
struct Plodding {
  static constexpr const char* name = "plodding";
  static bool supports(const Shape& shape) { return G::supports(shape); }
  static int rounds(const Shape& shape) { return G::rounds(shape); }
  static int scratch_slots(const Shape& shape) { return G::scratch_slots(shape); }
  static std::vector<Move> by(const Shape& shape, int rank, int round) { return G::by(shape, rank, round); }
  static std::vector<int> partners(const Shape& shape, int rank, int round) { return G::partners(shape, rank, round); }
};

/// What passes along a chain: rank k takes the whole vector from rank k - 1 in round k - 1.
struct Chain {
  static constexpr const char* name = "chain";
  static bool supports(const Shape&) { return true; }
  static int rounds(const Shape& shape) { return shape.ranks - 1; }
  static int scratch_slots(const Shape&) { return 0; }
  static std::vector<Move> by(const Shape& shape, int rank, int round) {
    if (rank != round + 1) return {};
    return {Move{
        rank, 0, {Piece{rank - 1, Buffer::output, 0, shape.ranks}}, {Piece{rank, Buffer::output, 0, shape.ranks}}}};
  }
  static std::vector<int> partners(const Shape&, int, int) { return {}; }
};

/// Every rank pulls the whole vector from `root` further on, in one round.
struct Shift {
  static constexpr const char* name = "shift";
  static bool supports(const Shape&) { return true; }
  static int rounds(const Shape&) { return 1; }
  static int scratch_slots(const Shape&) { return 0; }
  static std::vector<Move> by(const Shape& shape, int rank, int) {
    const int from = (rank + shape.root) % shape.ranks;
    return {Move{rank, 0, {Piece{from, Buffer::input, 0, shape.ranks}}, {Piece{rank, Buffer::output, 0, shape.ranks}}}};
  }
  static std::vector<int> partners(const Shape&, int, int) { return {}; }
};

double shift(const Topology& topology, int distance, std::uint64_t bytes) {
  return cost(Shift{}, Shape{Operation::broadcast, topology.ranks(), distance, true}, bytes, topology).seconds;
}

}  // namespace

TEST_CASE("on a flat topology the walk is the closed formula") {
  for (const int p : {1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 32, 33, 64, 100}) {
    const double n = p - 1;
    const double part = n / p;
    const double lg = ceil_lg(p);
    check_formula<Ring>(Operation::all_reduce, p, 0, {2 * n, 2 * part, part});
    check_formula<Ring>(Operation::reduce_scatter, p, 0, {n, part, part});
    check_formula<Ring>(Operation::all_gather, p, 0, {n, part, 0});
    check_formula<Ring>(Operation::all_to_all, p, 0, {n, part, 0});
    check_formula<Circulant>(Operation::all_reduce, p, 0, {2 * lg, 2 * part, part});
    check_formula<Circulant>(Operation::reduce_scatter, p, 0, {lg, part, part});
    check_formula<Circulant>(Operation::all_gather, p, 0, {lg, part, 0});
    check_formula<Bruck>(Operation::all_gather, p, 0, {lg, part, 0});
    check_formula<Pairwise>(Operation::all_to_all, p, 0, {n, part, 0});
    check_formula<Pairwise>(Operation::reduce_scatter, p, 0, {n, part, part});
    check_formula<Direct>(Operation::all_reduce, p, 0, {p == 1 ? 0.0 : 2.0, 2 * part, part});
    check_formula<Direct>(Operation::reduce_scatter, p, 0, {p == 1 ? 0.0 : 1.0, part, part});
    check_formula<Direct>(Operation::all_to_all, p, 0, {p == 1 ? 0.0 : 1.0, part, 0});
    // A chain of p blocks: p - 2 + p times a block.
    if (p > 1) check_formula<Ring>(Operation::broadcast, p, p / 3, {2 * n, 2 * part, 0});
    for (const int root : {0, p / 2, p - 1}) {
      if ((1 << ceil_lg(p)) == p) {
        check_formula<Binomial>(Operation::broadcast, p, root, {lg, lg, 0});
        check_formula<Binomial>(Operation::reduce, p, root, {lg, lg, lg});
        check_formula<Binomial>(Operation::gather, p, root, {lg, part, 0});
        check_formula<Binomial>(Operation::scatter, p, root, {lg, part, 0});
      }
    }
    if ((1 << ceil_lg(p)) == p) {
      check_formula<RecursiveDoubling>(Operation::all_reduce, p, 0, {lg, lg, lg});
      check_formula<RecursiveDoubling>(Operation::all_gather, p, 0, {lg, part, 0});
      check_formula<HalvingDoubling>(Operation::all_reduce, p, 0, {2 * lg, 2 * part, part});
    } else {
      check_formula<RecursiveDoubling>(Operation::all_reduce, p, 0, {lg + 1, lg + 1, lg});
    }
  }
}

TEST_CASE("bytes and messages are those of the lowered plans") {
  for (const int p : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 19}) {
    const Topology topology = flat(p);
    const Catalogue catalogue(Topology::torus({p}));
    for (const Shape& shape : test::all_shapes(p)) {
      if (p > 9 && shape.root % 5 != 0) continue;
      for (int a = 0; a < algorithm_count; ++a) {
        const AnyGenerator generator = catalogue.find(static_cast<Algorithm>(a));
        if (!generator.supports(shape)) continue;
        CAPTURE(generator.name);
        CAPTURE(test::describe(shape));
        std::int64_t messages = 0;
        std::vector<std::int64_t> sent(static_cast<std::size_t>(p), 0);
        std::vector<std::int64_t> received = sent;
        for (int rank = 0; rank < p; ++rank) {
          for (const MessageStep& step : lower(generator, shape, rank).steps) {
            std::vector<int> peers;
            for (const Message& message : step.sends) {
              peers.push_back(message.peer);
              sent[static_cast<std::size_t>(rank)] += message.piece.count;
              received[static_cast<std::size_t>(message.peer)] += message.piece.count;
            }
            std::sort(peers.begin(), peers.end());
            messages += std::unique(peers.begin(), peers.end()) - peers.begin();
          }
        }
        const std::int64_t most =
            std::max(*std::max_element(sent.begin(), sent.end()), *std::max_element(received.begin(), received.end()));
        const Cost found = cost(generator, shape, static_cast<std::uint64_t>(p) * 64, topology);
        CHECK(found.messages == static_cast<double>(messages));
        CHECK(found.bytes == doctest::Approx(static_cast<double>(most) * 64));
        CHECK(found.rounds == generator.rounds(shape));
      }
    }
  }
}

TEST_CASE("predictions never fall when bytes grow") {
  const Topology topologies[] = {flat(9), Topology::nodes({4, 1, 4}), Topology::torus({3, 3})};
  for (const Topology& topology : topologies) {
    const Catalogue catalogue(topology);
    for (const Shape& shape : test::all_shapes(9)) {
      if (shape.root % 4 != 0) continue;
      for (int a = 0; a < algorithm_count; ++a) {
        const AnyGenerator generator = catalogue.find(static_cast<Algorithm>(a));
        if (!generator.supports(shape)) continue;
        for (const int lanes : {1, 3}) {
          double before = 0;
          for (std::uint64_t bytes = 0; bytes <= std::uint64_t{1} << 34;
               bytes = bytes * (building::sanitized ? 64 : 2) + 1) {
            const double seconds = cost(generator, shape, bytes, topology, lanes).seconds;
            REQUIRE(seconds >= before * (1 - 1e-9));
            before = seconds;
          }
        }
      }
    }
  }
}

TEST_CASE("what crosses the uplink of a group shares it") {
  const std::uint64_t bytes = 1000000;
  const Link inside{0, 1e-10, 0};
  const Link between{0, 1e-9, 0};
  const double alone = 1e-3;
  for (const double uplinks : {0.5, 1.0, 2.0, 4.0, 100.0}) {
    const Topology two = Topology::nodes({4, 4}, inside, between, uplinks);
    // All four ranks of a node send to the other one.
    CHECK(near(shift(two, 4, bytes), alone * std::max(1.0, 4 / uplinks)));
    // Three ranks, two ranks.
    CHECK(near(shift(two, 3, bytes), alone * std::max(1.0, 3 / uplinks)));
    CHECK(near(shift(two, 2, bytes), alone * std::max(1.0, 2 / uplinks)));
    // One rank has the uplink for itself; the others stay inside, ten times faster.
    CHECK(near(shift(two, 1, bytes), alone * std::max(1.0, 1 / uplinks)));
  }
  // Uneven nodes: two of eight ranks sit in the small one, and two of those in the large one cross.
  CHECK(near(shift(Topology::nodes({6, 2}, inside, between), 4, bytes), alone * 2));
  // Nodes share their uplinks, racks theirs: two nodes of two ranks in each of two racks.
  const Topology racks(8, {Level{{0, 2, 4, 6}, inside, 2}, Level{{0, 4}, between, 1}}, Link{0, 2e-9, 0});
  CHECK(near(shift(racks, 4, bytes), 2 * alone * 4));  // four ranks leave a rack
  const Topology wide(8, {Level{{0, 2, 4, 6}, inside, 1}, Level{{0, 4}, between, 4}}, Link{0, 2e-9, 0});
  CHECK(near(shift(wide, 4, bytes), 2 * alone * 2));  // two ranks leave a node
  // Messages without data share nothing.
  CHECK(shift(Topology::nodes({4, 4}, Link{1e-6, 1e-10, 0}, Link{5e-6, 1e-9, 0}), 4, 0) == 5e-6);
}

TEST_CASE("one port: further messages cost the gap, and their data") {
  const Link link{alpha, beta, 1e-7};
  for (const int p : {2, 5, 64}) {
    const Topology topology(p, {}, link);
    const Shape gather{Operation::gather, p, 0, true};
    const double n = p - 1;
    CHECK(near(cost(Direct{}, gather, 64000, topology).seconds, alpha + (n - 1) * 1e-7 + 64000 * n / p * beta));
  }
}

TEST_CASE("a torus takes the bandwidth of every link on the way") {
  const Topology topology = Topology::torus({4, 6}, Link{0, beta, 0});
  CHECK(near(shift(topology, 1, 1000), 1000 * beta));
  CHECK(near(shift(topology, 3, 1000), 3000 * beta));
  CHECK(near(shift(topology, 6, 1000), 1000 * beta));
  CHECK(near(shift(topology, 12, 1000), 2000 * beta));
  CHECK(near(shift(topology, 15, 1000), 3000 * beta));
}

TEST_CASE("lanes pipeline: a chain takes p - 2 + lanes slices") {
  for (const int p : {2, 3, 8, 33}) {
    for (const int lanes : {1, 2, 3, 16, 64}) {
      const double expected = (p - 2 + lanes) * (alpha + 1e6 / lanes * beta);
      const Shape shape{Operation::broadcast, p, 0, true};
      CHECK(near(cost(Chain{}, shape, 1000000, flat(p), lanes).seconds, expected));
    }
  }
  // Where all ranks are at work in all rounds, there is nothing to gain.
  for (const int lanes : {2, 8}) {
    const Shape shape{Operation::all_reduce, 8, 0, false};
    CHECK(cost(Ring{}, shape, 1000000, flat(8), lanes).seconds > cost(Ring{}, shape, 1000000, flat(8)).seconds);
  }
  // A tree is idle at all depths but one, unless lanes follow each other.
  const Shape tree{Operation::all_reduce, 64, 0, false};
  CHECK(cost(DoubleTree{}, tree, 1 << 28, flat(64), 16).seconds <
        cost(DoubleTree{}, tree, 1 << 28, flat(64)).seconds / 2);
}

TEST_CASE("leaping over rounds that are alike changes nothing") {
  std::vector<int> uneven{3, 8, 1, 5};
  for (const Topology& topology : {flat(17), Topology::nodes(uneven), Topology::nodes({16, 1}, Link{1e-7, 1e-9, 0})}) {
    for (const Operation operation : {Operation::all_reduce, Operation::reduce_scatter, Operation::all_gather}) {
      for (const bool in_place : {false, true}) {
        for (const int lanes : {1, 3, 40}) {
          const Shape shape{operation, 17, 0, in_place};
          const Cost leapt = cost(Ring{}, shape, 12345, topology, lanes);
          const Cost walked = cost(Plodding<Ring>{}, shape, 12345, topology, lanes);
          CHECK(near(leapt.seconds, walked.seconds));
          CHECK(near(leapt.bytes, walked.bytes));
          CHECK(leapt.messages == walked.messages);
        }
      }
    }
  }
}

TEST_CASE("a hundred thousand ranks") {
  constexpr int p = building::very_many_ranks;
  const int rounds = ceil_lg(p);
  const double n = p - 1;
  const double bytes = 1e9;
  const Topology topology = flat(p);
  const auto walk = [&](const auto& generator, Operation operation) {
    return cost(generator, Shape{operation, p, 0, rooted(operation)}, 1000000000, topology);
  };
  CHECK(near(walk(Ring{}, Operation::all_reduce).seconds, 2 * n * alpha + bytes * n / p * (2 * beta + gamma_)));
  CHECK(walk(Ring{}, Operation::all_reduce).messages == 2 * n * p);
  CHECK(near(walk(Circulant{}, Operation::all_gather).seconds, rounds * alpha + bytes * n / p * beta));
  CHECK(near(walk(Binomial{}, Operation::broadcast).seconds, rounds * (alpha + bytes * beta)));
  // The slow links between nodes set the pace of a ring, whatever the size of the nodes.
  std::vector<int> nodes(p / 8, 8);
  const Topology clustered = Topology::nodes(nodes, Link{1e-7, 1e-10, 0}, Link{alpha, beta, 0});
  const Cost ring = cost(Ring{}, Shape{Operation::all_gather, p, 0, true}, 1000000000, clustered);
  REQUIRE(ring.walked);
  CHECK(ring.seconds == doctest::Approx(n * (alpha + bytes / p * beta)).epsilon(1e-3));

  // Ten thousand million moves are too many, and that is said at once.
  CHECK_FALSE(walk(Direct{}, Operation::all_reduce).walked);
  CHECK_FALSE(cost(Plodding<Ring>{}, Shape{Operation::all_gather, p, 0, true}, 8, topology, 1, 1000000).walked);
}

TEST_CASE("edges: nothing to do, no bytes, no blocks") {
  for (const Shape& shape : test::all_shapes(1)) {
    if (!Direct::supports(shape)) continue;
    const Cost found = cost(Direct{}, shape, 1000, flat(1));
    CHECK(found.walked);
    CHECK(found.seconds == 0);
    CHECK(found.messages == 0);
  }
  CHECK(cost(Circulant{}, Shape{Operation::all_reduce, 8, 0, false}, 0, flat(8)).seconds == doctest::Approx(6 * alpha));
  const Routes none(0, {{}, {}}, {{}, {}});
  CHECK(cost(Exchange{}, Shape{Operation::exchange, 2, 0, false, &none}, 0, flat(2)).seconds == 0);
  const Routes swap(2, {{0}, {1}}, {{1}, {0}});
  CHECK(near(cost(Exchange{}, Shape{Operation::exchange, 2, 0, false, &swap}, 2000, flat(2)).seconds,
             alpha + 1000 * beta));
}

TEST_CASE("questions that make no sense are refused") {
  const Shape shape{Operation::all_reduce, 4, 0, false};
  CHECK_THROWS_WITH_AS(
      cost(Ring{}, shape, 1, flat(5)),
      "cost: expected a topology of 4 ranks, found 5; describe the ranks of the group that runs the schedule", Error);
  CHECK_THROWS_AS(cost(Ring{}, shape, 1, flat(4), 0), Error);
  CHECK_THROWS_AS(cost(Ring{}, Shape{Operation::gather, 4, 0, true}, 1, flat(4)), Error);
  CHECK_THROWS_AS(cost(AnyGenerator(), shape, 1, flat(4)), Error);
}
