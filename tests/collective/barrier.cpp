// SPDX-License-Identifier: Apache-2.0
#include "meshwise/collective/barrier.hpp"

#include <doctest/doctest.h>

#include <atomic>

#include "meshwise/collective/all_reduce.hpp"
#include "support.hpp"

using namespace test;

TEST_CASE("nobody passes a barrier before all have come") {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    std::atomic<int> come{0};
    on_both(ranks, [&](Communicator& communicator) {
      const int start = come.load() / ranks;
      barrier(communicator);
      for (int k = 1; k <= 200; ++k) {
        come.fetch_add(1, std::memory_order_relaxed);
        barrier(communicator);
        require(come.load(std::memory_order_relaxed) >= (start + k) * ranks, "passed too early");
        barrier(communicator);
      }
    });
    CHECK(come.load() == 400 * ranks);
  }
}

TEST_CASE("a barrier moves nothing") {
  launch(3, [](Communicator& communicator) {
    barrier(communicator);
    require(communicator.traffic() == Traffic{1, 0, 0, 0}, "traffic");
  });
}

TEST_CASE("a barrier is not an all_reduce of nothing") {
  const Outcome result = outcome(2, LaunchOptions{}, [](Communicator& communicator) {
    if (communicator.rank() == 0) return barrier(communicator);
    all_reduce(communicator, std::span<float>());
  });
  for (const std::string& text : result.text) {
    CHECK(contains(text, "barrier"));
    CHECK(contains(text, "all_reduce"));
  }
}
