// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/thread/launch.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/collective/send_receive.hpp"

using namespace meshwise;

TEST_CASE("every rank runs once, on a thread of its own") {
  for (const int ranks : {1, 2, 9, 64}) {
    std::mutex mutex;
    std::set<int> seen;
    std::set<std::thread::id> threads;
    launch(ranks, [&](Communicator& communicator) {
      const std::lock_guard<std::mutex> lock(mutex);
      CHECK(communicator.size() == ranks);
      seen.insert(communicator.rank());
      threads.insert(std::this_thread::get_id());
    });
    CHECK(seen.size() == static_cast<std::size_t>(ranks));
    CHECK(*seen.begin() == 0);
    CHECK(*seen.rbegin() == ranks - 1);
    CHECK(threads.size() == static_cast<std::size_t>(ranks));
  }
}

TEST_CASE("an impossible number of ranks is refused") {
  for (const int ranks : {0, -1, 4097, 2147483647}) {
    try {
      launch(ranks, [](Communicator&) { FAIL("started"); });
      FAIL("not refused");
    } catch (const Error& error) {
      CHECK(error.code() == Code::invalid_argument);
      CHECK(std::string(error.what()).find("1 to 4096 ranks, found " + std::to_string(ranks)) != std::string::npos);
    }
  }
  LaunchOptions options;
  options.deadline = std::nan("");
  CHECK_THROWS_AS(launch(1, options, [](Communicator&) {}), Error);
}

TEST_CASE("options reach the communicator") {
  LaunchOptions options;
  options.deadline = 3;
  options.name = "all";
  launch(2, options, [](Communicator& communicator) {
    CHECK(communicator.deadline() == 3);
    CHECK(communicator.name() == "all");
    CHECK(communicator.endpoint().capabilities().memory);
  });
  options.messages = true;
  launch(2, options, [](Communicator& communicator) {
    CHECK(!communicator.endpoint().capabilities().memory);
    CHECK(communicator.endpoint().capabilities().message);
  });
}

TEST_CASE("a rank that throws aborts the others, and the first cause is thrown once") {
  std::atomic<int> aborted{0};
  for (const int culprit : {0, 2}) {
    aborted = 0;
    try {
      launch(4, [&](Communicator& world) {
        Communicator half = world.split(world.rank() % 2);
        barrier(world);
        if (world.rank() == culprit) throw std::out_of_range("page 7");
        try {
          // Some wait in the group of the culprit, some in another one, some for a message.
          if (world.rank() == 3) {
            int data = 0;
            receive(world, std::span(&data, 1), 1);
          }
          barrier(half);
          barrier(world);
        } catch (const Error& error) {
          const std::string text = error.what();
          CHECK(error.code() == Code::aborted);
          CHECK(text.find("rank " + std::to_string(culprit) + " of the job failed: page 7") != std::string::npos);
          aborted.fetch_add(1);
          throw;
        }
      });
      FAIL("nothing was thrown");
    } catch (const std::out_of_range& error) {
      CHECK(std::string(error.what()) == "page 7");
    }
    CHECK(aborted.load() == 3);
  }
}

TEST_CASE("an exception of any type is passed on") {
  CHECK_THROWS_AS(launch(2,
                         [](Communicator& world) {
                           if (world.rank() == 1) throw 42;
                           barrier(world);
                         }),
                  int);
}

TEST_CASE("a rank that throws while others compute is heard of at their next call") {
  try {
    launch(2, [](Communicator& world) {
      if (world.rank() == 0) throw std::runtime_error("early");
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      std::vector<float> data(1000);
      all_reduce(world, data);
    });
    FAIL("nothing was thrown");
  } catch (const std::runtime_error& error) {
    CHECK(std::string(error.what()) == "early");
  }
}

TEST_CASE("a rank that returns early is not waited for") {
  try {
    launch(3, [](Communicator& world) {
      if (world.rank() == 1) return;
      barrier(world);
    });
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == Code::peer_left);
    CHECK(std::string(error.what()).find("expected rank 1 to take part in barrier") != std::string::npos);
  }
}

TEST_CASE("launches nest and may run side by side") {
  std::atomic<int> count{0};
  launch(2, [&](Communicator& outer) {
    launch(3, [&](Communicator& inner) {
      int data = 1;
      all_reduce(inner, std::span(&data, 1));
      count.fetch_add(data);
    });
    barrier(outer);
    CHECK(count.load() == 18);
  });
}

TEST_CASE("what the environment forces is read once and holds for all groups") {
  const auto lanes = [](const LaunchOptions& options) {
    std::uint64_t messages = 0;
    launch(2, options, [&](Communicator& world) {
      Communicator pair = world.split(0);
      std::vector<double> data(1000, 1.0);
      all_reduce(pair, data);
      CHECK(data[999] == 2.0);
      if (world.rank() == 0) messages = pair.traffic().messages;
    });
    return messages;
  };
  LaunchOptions forced;
  forced.settings = Settings::parse("all_reduce=ring:lanes=3", "");
  CHECK(lanes(forced) == 3 * 2);
  REQUIRE(setenv("MESHWISE_ALGORITHM", "all_reduce=ring:lanes=5", 1) == 0);
  CHECK(lanes(LaunchOptions{}) == 5 * 2);
  CHECK(lanes(forced) == 3 * 2);
  REQUIRE(setenv("MESHWISE_ALGORITHM", "all_reduce=rang", 1) == 0);
  CHECK_THROWS_WITH_AS(lanes(LaunchOptions{}), doctest::Contains("MESHWISE_ALGORITHM"), Error);
  REQUIRE(unsetenv("MESHWISE_ALGORITHM") == 0);
}

TEST_CASE("a topology describes the ranks that are started, and groups get their part of it") {
  LaunchOptions options;
  options.topology = Topology::nodes({2, 3});
  CHECK_THROWS_WITH_AS(launch(4, options, [](Communicator&) {}),
                       doctest::Contains("expected a topology of 4 ranks, found 5"), Error);
  launch(5, options, [](Communicator& world) {
    Communicator part = world.split(world.rank() == 1 ? -1 : 0);
    for (Communicator* communicator : {&world, &part}) {
      if (communicator->empty()) continue;
      std::vector<int> data(100, 1);
      CollectiveOptions chosen;
      chosen.algorithm = Algorithm::hierarchical;
      all_reduce(*communicator, data, chosen);
      CHECK(data[99] == communicator->size());
    }
  });
}
