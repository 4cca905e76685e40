// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/detail/lane_order.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <tuple>

#include "../dice.hpp"

using namespace meshwise;
using detail::LaneOrder;

TEST_CASE("the order of lanes is by round + lane, then lane, and complete") {
  for (int rounds = 0; rounds <= 6; ++rounds) {
    for (int lanes = 1; lanes <= 6; ++lanes) {
      std::vector<std::tuple<int, int, int>> visits;
      detail::in_lane_order(rounds, lanes,
                            [&](int round, int lane) { visits.emplace_back(round + lane, lane, round); });
      CHECK(visits.size() == static_cast<std::size_t>(rounds * lanes));
      CHECK(std::is_sorted(visits.begin(), visits.end()));
      for (const auto& [sum, lane, round] : visits) {
        CHECK((lane >= 0 && lane < lanes && round >= 0 && round < rounds && sum == round + lane));
      }
    }
  }
}

TEST_CASE("the index of a step is its place when all lanes are written down") {
  test::Dice dice{31};
  for (int trial = 0; trial < 200; ++trial) {
    const int rounds = 1 + dice.roll(7);
    const int lanes = 1 + dice.roll(6);
    LaneOrder order;
    int steps = 0;
    for (int k = 0; k < rounds; ++k) {
      const int number = dice.roll(4);
      CHECK(order.begin(k) == steps);
      steps += number;
      order.end_round(steps);
      CHECK(order.end(k) == steps);
    }
    int next = 0;
    detail::in_lane_order(rounds, lanes, [&](int round, int lane) {
      for (int i = order.begin(round); i < order.end(round); ++i) CHECK(order.index(i, lane, lanes) == next++);
    });
    CHECK(next == steps * lanes);
  }
}

TEST_CASE("no lane is an error that says so") {
  CHECK_NOTHROW(detail::require_lanes("compile", 1));
  for (const int lanes : {0, -1}) {
    try {
      detail::require_lanes("compile", lanes);
      FAIL("must throw");
    } catch (const Error& error) {
      CHECK(std::string(error.what()).find("compile") != std::string::npos);
      CHECK(std::string(error.what()).find(std::to_string(lanes)) != std::string::npos);
    }
  }
}
