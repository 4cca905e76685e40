// SPDX-License-Identifier: Apache-2.0
#include "meshwise/collective/barrier.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <span>
#include <string>
#include <vector>

#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/send_receive.hpp"
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
  const Outcome result = outcome(2, Setup{}, [](Communicator& communicator) {
    if (communicator.rank() == 0) return barrier(communicator);
    all_reduce(communicator, std::span<float>());
  });
  for (const std::string& text : result.text) {
    CHECK(contains(text, "barrier"));
    CHECK(contains(text, "all_reduce"));
  }
}

TEST_CASE("a barrier that meets an all_reduce: both calls are named, and that the operations differ") {
  launch(2, [](Communicator& world) {
    std::string text;
    std::vector<float> data(8, 1.0F);
    try {
      if (world.rank() == 0) {
        all_reduce(world, std::span(data));
      } else {
        barrier(world);
      }
    } catch (const Error& error) {
      CHECK(error.code() == Code::mismatch);
      text = error.what();
    }
    CHECK(text.find("barrier()") != std::string::npos);
    CHECK(text.find("all_reduce(8 x f32, sum, in place)") != std::string::npos);
    CHECK(text.find("differ in the operation") != std::string::npos);
  });
}

TEST_CASE("an error that began in another call says where, and launch throws the one where it began") {
  std::string text;
  try {
    launch(4, [](Communicator& world) {
      std::vector<int> data(world.rank() == 1 ? 4 : 2);
      try {
        if (world.rank() == 1) receive(world, std::span(data), 0);
        if (world.rank() == 0) send(world, std::span<const int>(data), 1);
        barrier(world);
      } catch (const Error& error) {
        const bool began_here = std::string(error.what()).find("stopped by") == std::string::npos;
        CHECK(began_here == (world.rank() == 1));
        throw;
      }
    });
  } catch (const Error& error) {
    text = error.what();
  }
  CHECK(text.find("receive (rank 1)") == 0);
  CHECK(text.find("16 bytes") != std::string::npos);
  CHECK(text.find("8 bytes") != std::string::npos);
}

TEST_CASE("a monitored barrier names the ranks that are late") {
  Setup setup;
  setup.deadline = 60;
  const Outcome result = outcome(4, setup, [](Communicator& world) {
    monitored_barrier(world, 30);
    if (world.rank() == 1 || world.rank() == 2) {
      // Late: comes when the others have given up.
      std::vector<int> data(1);
      receive(world, data, 0);
    }
    try {
      monitored_barrier(world, 0.1);
    } catch (const Error& error) {
      require(error.code() == Code::timed_out, error.what());
      require(error.report().ranks == std::vector<int>{1, 2}, error.what());
      throw;
    }
  });
  for (const int rank : {0, 3}) {
    CAPTURE(result.text[static_cast<std::size_t>(rank)]);
    CHECK(contains(result.text[static_cast<std::size_t>(rank)], "monitored_barrier"));
  }
  launch(1, [](Communicator& world) {
    refuse([&] { monitored_barrier(world, 0); }, "a time above 0 seconds");
    start_barrier(world).wait();
    Prepared<void> prepared = prepare_barrier(world);
    prepared.run();
    prepared.start().wait();
    require(world.traffic() == Traffic{3, 0, 0, 0}, "traffic");
  });
}
