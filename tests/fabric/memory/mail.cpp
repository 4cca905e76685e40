// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/memory/mail.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "../calls.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/fabric/thread/launch.hpp"

using namespace meshwise;

TEST_CASE("a posted message that is given up is withdrawn, and its memory is free again") {
  launch(2, [](Communicator& communicator) {
    Endpoint& endpoint = communicator.endpoint();
    for (int k = 0; k < 20; ++k) {
      if (communicator.rank() == 0) {
        std::vector<int> data(50000, k);
        auto kept = endpoint.post_send("test", 1, 1, data.data(), data.size() * sizeof(int), -1);
        {
          std::vector<int> other(50000, -1);
          auto given_up = endpoint.post_send("test", 1, 2, other.data(), other.size() * sizeof(int), -1);
        }
        barrier(communicator);
        kept->wait();
      } else {
        barrier(communicator);
        std::vector<int> data(50000);
        endpoint.receive("test", 0, 1, data.data(), data.size() * sizeof(int), -1);
        CHECK(data[49999] == k);
      }
    }
  });
}

TEST_CASE("giving up waits for a receiver that has begun to read") {
  // For the sanitizers: the sender frees its memory while the receiver may be copying it.
  for (int k = 0; k < 60; ++k) {
    launch(2, [k](Communicator& communicator) {
      Endpoint& endpoint = communicator.endpoint();
      std::vector<int> data(100000, communicator.rank() == 0 ? k : -1);
      if (communicator.rank() == 0) {
        barrier(communicator);
        const auto sending = endpoint.post_send("test", 1, 5, data.data(), data.size() * sizeof(int), -1);
        for (int spin = 0; spin < k * 20; ++spin) detail::relax();
        return;
      }
      barrier(communicator);
      try {
        endpoint.receive("test", 0, 5, data.data(), data.size() * sizeof(int), -1);
        CHECK(data[0] == k);
        CHECK(data[99999] == k);
      } catch (const Error& error) {
        CHECK(error.code() == Code::peer_left);
      }
    });
  }
}

TEST_CASE("the user's tags cannot meet the library's") {
  // A collective over messages between two receives of the same pair.
  LaunchOptions options;
  options.messages = true;
  launch(2, options, [](Communicator& communicator) {
    Endpoint& endpoint = communicator.endpoint();
    const int mine = communicator.rank();
    int got = -1;
    const auto sending = endpoint.post_send("test", 1 - mine, 1, &mine, sizeof(int), -1);
    Communicator same = communicator.split(0);
    endpoint.receive("test", 1 - mine, 1, &got, sizeof(int), -1);
    CHECK(got == 1 - mine);
    sending->wait();
  });
}

TEST_CASE("a loop of tests for a message goes on with what was started") {
  launch(2, LaunchOptions{20}, [](Communicator& world) {
    Communicator other = world.split(0);
    for (int k = 0; k < 20; ++k) {
      calls::Case one(Operation::all_reduce, 2, 0, 30000, other.rank());
      std::vector<char> large(100000, 'x');
      const auto running = other.endpoint().start(one.call());
      if (world.rank() == 0) {
        while (!world.endpoint().try_receive("test", 1, 1, large.data(), large.size())) {}
        const auto sending = world.endpoint().post_send("test", 1, 2, large.data(), large.size(), -1);
        while (!sending->test()) {}
        running->wait();
      } else {
        running->wait();  // the other rank has its part to do
        world.endpoint().post_send("test", 0, 1, large.data(), large.size(), -1)->wait();
        world.endpoint().receive("test", 0, 2, large.data(), large.size(), -1);
      }
      CHECK(one.right());
    }
  });
}
