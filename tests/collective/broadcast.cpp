// SPDX-License-Identifier: Apache-2.0
#include "meshwise/collective/broadcast.hpp"

#include <doctest/doctest.h>

#include "support.hpp"

using namespace test;

TEST_CASE("broadcast gives every rank the root's vector, for every root") {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    on_both(ranks, [&](Communicator& communicator) {
      for (const std::size_t size : sizes) {
        for (const Algorithm algorithm : algorithms) {
          for (int root = 0; root < ranks; ++root) {
            if (size > 64 && root % 3 != 0 && !full()) continue;
            Guarded<double> data(size);
            for (std::size_t i = 0; i < size; ++i) {
              data.data()[i] = communicator.rank() == root ? static_cast<double>(i) + root : -1.0;
            }
            const Traffic before = communicator.traffic();
            broadcast(communicator, data.span(), root, CollectiveOptions{algorithm, -1});
            data.check("data");
            bool right = true;
            for (std::size_t i = 0; i < size; ++i) right = right && data.data()[i] == static_cast<double>(i) + root;
            require(right, std::to_string(size) + " from " + std::to_string(root));
            const std::uint64_t volume = (communicator.traffic() - before).volume;
            require(volume == (communicator.rank() == root ? 0 : size * 8), "volume");
          }
        }
      }
    });
  }
}

TEST_CASE("broadcast refuses a root outside of the group") {
  launch(2, [](Communicator& communicator) {
    for (const int root : {-1, 2}) {
      int data = 0;
      try {
        broadcast(communicator, std::span(&data, 1), root);
        require(false, "not refused");
      } catch (const Error& error) {
        require(contains(error.what(), "a root from 0 to 1"), error.what());
        require(contains(error.what(), std::to_string(root)), error.what());
      }
    }
  });
}
