// SPDX-License-Identifier: Apache-2.0
#include "meshwise/topology/topology.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <random>
#include <set>

#include "meshwise/topology/link.hpp"

using namespace meshwise;

namespace {

constexpr Link near{1e-6, 1e-10, 0};
constexpr Link far{5e-6, 1e-9, 1e-7};

/// Racks of nodes of uneven sizes: ranks 0-2 | 3 | 4-8 || 9-10 | 11.
Topology racks() { return Topology(12, {Level{{0, 3, 4, 9, 11}, near, 1}, Level{{0, 9}, near, 2}}, far); }

std::string message(const auto& make) {
  try {
    make();
  } catch (const Error& error) {
    CHECK(error.code() == Code::invalid_argument);
    return error.what();
  }
  return "no error";
}

bool says(const std::string& text, const char* word) { return text.find(word) != std::string::npos; }

}  // namespace

TEST_CASE("factories say what they are told") {
  CHECK(Topology().ranks() == 1);
  const Topology flat = Topology::flat(5, far);
  CHECK(flat.ranks() == 5);
  CHECK(flat.levels().empty());
  CHECK(flat.outermost() == far);
  CHECK(flat.meeting(1, 4) == 0);
  CHECK(flat.link(0) == far);

  const Topology nodes = Topology::nodes({7, 8, 1}, near, far, 2);
  CHECK(nodes.ranks() == 16);
  REQUIRE(nodes.levels().size() == 1);
  CHECK(nodes.levels()[0].begins == std::vector<int>{0, 7, 15});
  CHECK(nodes.levels()[0].uplinks == 2);
  CHECK(nodes.link(0) == near);
  CHECK(nodes.link(1) == far);
  CHECK(nodes.meeting(0, 6) == 0);
  CHECK(nodes.meeting(6, 7) == 1);
  CHECK(nodes.meeting(15, 14) == 1);
  CHECK(nodes.group(0, 6) == 0);
  CHECK(nodes.group(0, 7) == 1);
  CHECK(nodes.group(0, 15) == 2);

  const Topology torus = Topology::torus({2, 3, 4}, near);
  CHECK(torus.ranks() == 24);
  CHECK(torus.torus_dims() == std::vector<int>{2, 3, 4});
}

TEST_CASE("ranks meet at the innermost level that holds both") {
  const Topology topology = racks();
  for (int a = 0; a < 12; ++a) {
    CHECK(topology.meeting(a, a) == 0);
    for (int b = 0; b < 12; ++b) {
      const int node[] = {0, 0, 0, 1, 2, 2, 2, 2, 2, 3, 3, 4};
      const int rack[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1};
      CHECK(topology.meeting(a, b) == (node[a] == node[b] ? 0 : rack[a] == rack[b] ? 1 : 2));
      CHECK(topology.meeting(a, b) == topology.meeting(b, a));
    }
  }
}

TEST_CASE("distance is the longest walk along one dim of a torus") {
  const Topology torus = Topology::torus({3, 5});
  for (int a = 0; a < 15; ++a) {
    for (int b = 0; b < 15; ++b) {
      const int rows = std::abs(a / 5 - b / 5);
      const int columns = std::abs(a % 5 - b % 5);
      const int expected = std::max({1, std::min(rows, 3 - rows), std::min(columns, 5 - columns)});
      CHECK(torus.distance(a, b) == expected);
    }
  }
  CHECK(racks().distance(0, 11) == 1);
}

TEST_CASE("descriptions that contradict themselves are refused, with what is wrong") {
  CHECK(says(message([] { Topology::flat(0); }), "at least 1 rank"));
  CHECK(says(message([] { Topology::flat(-3); }), "-3"));
  CHECK(says(message([] { Topology::nodes({}); }), "at least 1 rank"));
  CHECK(says(message([] { Topology::nodes({4, 0}); }), "at least one rank on every node"));
  CHECK(says(message([] { Topology::nodes({0x7fffffff, 2}); }), "an int can count"));
  CHECK(says(message([] { Topology::torus({2, 0}); }), "torus dims"));
  CHECK(says(message([] { Topology::torus({65536, 65536}); }), "torus dims"));
  CHECK(says(message([] { Topology(7, {}, near, {2, 3}); }), "product 7"));
  CHECK(says(message([] { Topology(6, {Level{{0, 3}, near, 1}}, near, {2, 3}); }), "levels or a torus"));
  CHECK(says(message([] { Topology::flat(2, Link{-1, 0, 0}); }), "outermost link"));
  CHECK(says(message([] { Topology::flat(2, Link{0, std::numeric_limits<double>::quiet_NaN(), 0}); }), "outermost"));
  CHECK(says(message([] { Topology::flat(2, Link{std::numeric_limits<double>::infinity(), 0, 0}); }), "outermost"));
  CHECK(says(message([] { Topology(2, {}, near, {}, -1); }), "reduced byte"));
  for (const std::vector<int>& begins : {std::vector<int>{}, std::vector<int>{1, 2}, std::vector<int>{0, 2, 2},
                                         std::vector<int>{0, 3, 1}, std::vector<int>{0, 4}, std::vector<int>{0, -1}}) {
    CHECK(says(message([&] { Topology(4, {Level{begins, near, 1}}, far); }), "ascending first ranks"));
  }
  CHECK(says(message([] { Topology(4, {Level{{0, 2}, near, 0}}, far); }), "uplinks"));
  CHECK(says(message([] { Topology(4, {Level{{0, 2}, near, 1}, Level{{0, 3}, near, 1}}, far); }), "unions of groups"));
}

TEST_CASE("signatures agree for equal topologies and differ for others") {
  CHECK(racks() == racks());
  CHECK(racks().signature() == racks().signature());
  std::set<std::uint64_t> signatures;
  int made = 0;
  const auto add = [&](const Topology& topology) {
    signatures.insert(topology.signature());
    ++made;
  };
  for (int ranks = 1; ranks <= 64; ++ranks) add(Topology::flat(ranks));
  for (int cut = 1; cut < 16; ++cut) add(Topology::nodes({cut, 16 - cut}));
  add(Topology::nodes({8, 8}, near, far));
  add(Topology::nodes({8, 8}, far, near));
  add(Topology::nodes({8, 8}, near, far, 2));
  add(Topology::nodes({8, 8}, Link{1e-6, 1e-10, 1e-12}, far));
  add(Topology::torus({4, 4}));
  add(Topology::torus({2, 8}));
  add(Topology::torus({8, 2}));
  add(Topology::torus({16}));
  add(Topology(16, {}, near, {}, 1e-11));
  add(racks());
  CHECK(static_cast<int>(signatures.size()) == made);
  CHECK(Topology(2, {}, Link{0.0, 1, 1}).signature() == Topology(2, {}, Link{-0.0, 1, 1}).signature());
}

TEST_CASE("a subset keeps the levels whose groups stay together") {
  const Topology topology = racks();
  CHECK(topology.subset({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}) == topology);
  // One rank of each node: nodes of one rank in two racks.
  const Topology leaders = topology.subset({0, 3, 4, 9, 11});
  REQUIRE(leaders.levels().size() == 2);
  CHECK(leaders.levels()[0].begins == std::vector<int>{0, 1, 2, 3, 4});
  CHECK(leaders.levels()[1].begins == std::vector<int>{0, 3});
  // Any order of whole groups will do.
  CHECK(topology.subset({11, 9, 10}).levels()[0].begins == std::vector<int>{0, 1});
  // A node that comes twice is no run; its rack still is.
  const Topology torn = topology.subset({0, 3, 1, 10});
  REQUIRE(torn.levels().size() == 1);
  CHECK(torn.levels()[0].begins == std::vector<int>{0, 3});
  CHECK(topology.subset({0, 9, 1}).levels().empty());
  CHECK(topology.subset({5}).ranks() == 1);
  CHECK(Topology::torus({2, 3}).subset({0, 1}).torus_dims().empty());
  CHECK(says(message([&] { topology.subset({0, 12}); }), "ranks from 0 to 11"));
  CHECK(says(message([&] { topology.subset({}); }), "at least 1 rank"));

  // Two members never seem closer than they are.
  std::mt19937 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<int> members;
    for (int rank = 0; rank < 12; ++rank) {
      if (random() % 2 == 0) members.push_back(rank);
    }
    if (members.empty()) continue;
    if (trial % 2 == 0) std::shuffle(members.begin(), members.end(), random);
    const Topology part = topology.subset(members);
    REQUIRE(part.ranks() == static_cast<int>(members.size()));
    for (std::size_t a = 0; a < members.size(); ++a) {
      for (std::size_t b = 0; b < members.size(); ++b) {
        const bool apart = topology.meeting(members[a], members[b]) == 2;
        const int level = part.meeting(static_cast<int>(a), static_cast<int>(b));
        if (apart) CHECK(level == static_cast<int>(part.levels().size()));
        if (trial % 2 != 0) CHECK(level == topology.meeting(members[a], members[b]));
      }
    }
  }
}
