// SPDX-License-Identifier: Apache-2.0
#include "meshwise/collective/prepared.hpp"

#include <doctest/doctest.h>

#include "meshwise/collective/all_gather.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/collective/reduce_scatter.hpp"
#include "support.hpp"

using namespace test;

TEST_CASE("prepared once, run many times on what the buffers hold then") {
  for (const int ranks : {1, 2, 6}) {
    on_both(ranks, [&](Communicator& communicator) {
      std::vector<bf16> in(1000);
      std::vector<bf16> out(1000);
      CollectiveOptions options;
      options.wire = ElementKind::f32;
      auto wired = prepare_all_reduce(communicator, in, out, options);
      auto average = prepare_all_reduce<Average>(communicator, in, out);
      Prepared<void> meeting = prepare_barrier(communicator);
      for (int k = 0; k < 5; ++k) {
        for (bf16& x : in) x = bf16(static_cast<float>(k));
        const std::span<bf16> result = wired.run();
        require(result.data() == out.data() && result[999] == bf16(static_cast<float>(k * ranks)), "run");
        meeting.run();
        Pending<std::span<bf16>> pending = average.start();
        require(pending.wait()[0] == bf16(static_cast<float>(k)), "start");
      }
      require(communicator.traffic().calls == 15, "each run counts");
    });
  }
}

TEST_CASE("a prepared collective meets the blocking one") {
  launch(3, [](Communicator& communicator) {
    std::vector<int> data(4, 1);
    if (communicator.rank() == 1) {
      auto prepared = prepare_all_reduce(communicator, std::move(data));
      require(prepared.run()[3] == 3, "prepared, with a buffer of its own");
    } else {
      all_reduce(communicator, data);
      require(data[3] == 3, "blocking");
    }
  });
}

TEST_CASE("one at a time") {
  launch(2, [](Communicator& communicator) {
    std::vector<int> data(4, 1);
    auto prepared = prepare_all_reduce(communicator, data);
    auto pending = prepared.start();
    refuse([&] { prepared.run(); }, "a prepared collective that is not in flight");
    refuse([&] { (void)prepared.start(); }, "wait for its Pending first");
    auto moved = std::move(prepared);
    pending.wait();
    refuse([&] { prepared.run(); }, "an empty or moved-from object");  // NOLINT: moved-from is specified
    require(moved.run()[0] == 4, "movable");
    Prepared<void> none;
    refuse([&] { none.run(); }, "a prepared collective");
  });
}

TEST_CASE("a Pending keeps its prepared collective alive") {
  launch(2, [](Communicator& communicator) {
    Pending<std::span<int>> pending;
    {
      auto prepared = prepare_all_gather(communicator, std::vector<int>{communicator.rank()}, std::vector<int>(2));
      pending = prepared.start();
    }
    while (!pending.test()) {}
  });
}
