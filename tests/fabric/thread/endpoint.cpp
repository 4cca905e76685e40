// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/thread/endpoint.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/broadcast.hpp"
#include "meshwise/collective/reduce_scatter.hpp"
#include "meshwise/fabric/thread/launch.hpp"

using namespace meshwise;

TEST_CASE("scratch grows with the largest call and is used again") {
  launch(5, [](Communicator& communicator) {
    for (const std::size_t size : {10U, 100000U, 7U, 200000U, 0U, 5U}) {
      std::vector<double> data(size, 1.0);
      const auto own = reduce_scatter(communicator, data, CollectiveOptions{Algorithm::ring, -1});
      bool right = true;
      for (const double item : own) right = right && item == 5.0;
      CHECK(right);
    }
  });
}

TEST_CASE("more kinds of calls than the cache holds") {
  launch(3, [](Communicator& communicator) {
    for (int k = 0; k < 200; ++k) {
      Communicator sub = communicator.split(0, -communicator.rank());
      for (const Algorithm algorithm : {Algorithm::direct, Algorithm::ring}) {
        std::vector<int> data(5, communicator.rank());
        broadcast(sub, data, k % 3, CollectiveOptions{algorithm, -1});
        CHECK(data[4] == 2 - k % 3);
      }
    }
  });
}

TEST_CASE("many groups come and go") {
  launch(4, [](Communicator& communicator) {
    for (int k = 0; k < 300; ++k) {
      Communicator sub = communicator.split((communicator.rank() + k) % 3 - 1);
      if (sub.empty()) continue;
      int data = 1;
      all_reduce(sub, std::span(&data, 1));
      CHECK(data == sub.size());
    }
  });
}
