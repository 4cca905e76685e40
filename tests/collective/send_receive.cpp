// SPDX-License-Identifier: Apache-2.0
#include "meshwise/collective/send_receive.hpp"

#include <doctest/doctest.h>

#include <numeric>

#include "meshwise/collective/barrier.hpp"
#include "support.hpp"

using namespace test;

namespace {
std::vector<std::uint32_t> message(int from, int to, std::size_t size) {
  std::vector<std::uint32_t> data(size);
  std::iota(data.begin(), data.end(), static_cast<std::uint32_t>(from * 1000000 + to * 1000));
  return data;
}
}  // namespace

TEST_CASE("messages of all sizes arrive, between all pairs") {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    launch(ranks, [&](Communicator& communicator) {
      const int rank = communicator.rank();
      for (const std::size_t size : sizes) {
        for (int distance = 0; distance < ranks; ++distance) {
          const int to = (rank + distance) % ranks;
          const int from = (rank - distance + ranks) % ranks;
          std::vector<std::uint32_t> data(size);
          const auto out = message(rank, to, size);
          exchange(communicator, out, to, data, from);
          require(data == message(from, rank, size), "wrong message");
        }
      }
    });
  }
}

TEST_CASE("order holds per sender and tag, and tags may be taken in any order") {
  launch(2, [](Communicator& communicator) {
    const int tags = 50;
    const int each = 20;
    if (communicator.rank() == 0) {
      for (int k = 0; k < each; ++k) {
        for (int tag = 0; tag < tags; ++tag) {
          const int data[2] = {tag, k};
          send(communicator, data, 1, MessageOptions{tag, -1});
        }
      }
      return;
    }
    for (int tag = tags - 1; tag >= 0; --tag) {
      for (int k = 0; k < each; ++k) {
        int data[2] = {};
        receive(communicator, data, 0, MessageOptions{tag, -1});
        require(data[0] == tag && data[1] == k, "out of order");
      }
    }
  });
}

TEST_CASE("a large message waits for its receiver, a small one does not") {
  launch(2, [](Communicator& communicator) {
    const int other = 1 - communicator.rank();
    std::vector<int> few(100, communicator.rank());
    std::vector<int> got(100);
    send(communicator, few, other);  // both send first
    receive(communicator, got, other);
    require(got[99] == other, "small");
    if (communicator.rank() == 0) {
      std::vector<int> many(1 << 20, 7);
      send(communicator, many, 1);
      many.assign(many.size(), 8);  // may change as soon as send returns
      barrier(communicator);
    } else {
      std::vector<int> all(1 << 20);
      receive(communicator, all, 0);
      barrier(communicator);
      for (const int item : all) require(item == 7, "large");
    }
  });
}

TEST_CASE("the receiver counts the traffic") {
  launch(2, [](Communicator& communicator) {
    std::vector<double> data(10);
    if (communicator.rank() == 0) {
      send(communicator, data, 1);
      require(communicator.traffic() == Traffic{1, 0, 0, 0}, "sender");
    } else {
      receive(communicator, data, 0);
      require(communicator.traffic() == Traffic{1, 1, 80, 80}, "receiver");
    }
  });
}

TEST_CASE("a message of the wrong size is an error on both sides that names both sizes") {
  for (const std::size_t size : {std::size_t{10}, std::size_t{100000}}) {
    const Outcome result = outcome(2, Setup{}, [&](Communicator& communicator) {
      std::vector<float> data(size + static_cast<std::size_t>(communicator.rank()));
      if (communicator.rank() == 0) {
        send(communicator, data, 1);
        barrier(communicator);  // at the latest here, if the message was copied
      } else {
        receive(communicator, data, 0);
      }
    });
    for (std::size_t rank = 0; rank < 2; ++rank) {
      CHECK(result.code[rank] == Code::mismatch);
      CHECK(contains(result.text[rank], "expected " + std::to_string(4 * size + 4) + " bytes"));
      CHECK(contains(result.text[rank], "found " + std::to_string(4 * size) + " bytes"));
    }
  }
}

TEST_CASE("receiving from a rank that has ended is an error, its last messages are not") {
  const Outcome result = outcome(2, Setup{}, [](Communicator& communicator) {
    int data = 5;
    if (communicator.rank() == 0) return send(communicator, std::span(&data, 1), 1);
    receive(communicator, std::span(&data, 1), 0);
    require(data == 5, "the message was sent");
    receive(communicator, std::span(&data, 1), 0);
  });
  CHECK(result.text[0].empty());
  CHECK(result.code[1] == Code::peer_left);
  CHECK(contains(result.text[1], "receive with rank 0"));
}

TEST_CASE("a send that reaches its deadline withdraws its message") {
  const Outcome result = outcome(2, Setup{}, [](Communicator& communicator) {
    if (communicator.rank() == 0) {
      std::vector<int> data(100000);
      send(communicator, data, 1, MessageOptions{0, 0.05});
    } else {
      std::vector<int> data(100000);
      receive(communicator, data, 0, MessageOptions{1, 0});
    }
  });
  CHECK(contains(result.text[0], "send with rank 1 within 0.05"));
  CHECK(contains(result.text[1], "send with rank 1 within 0.05"));
  CHECK(result.code[0] == Code::timed_out);
}

TEST_CASE("peers and tags out of range are refused") {
  launch(1, [](Communicator& communicator) {
    int data = 0;
    CHECK_THROWS_AS(send(communicator, std::span(&data, 1), 1), Error);
    CHECK_THROWS_AS(receive(communicator, std::span(&data, 1), -1), Error);
    CHECK_THROWS_AS(send(communicator, std::span(&data, 1), 0, MessageOptions{-1, -1}), Error);
    std::vector<int> all(200000, 3);
    send(communicator, all, 0);
    std::vector<int> back(200000);
    receive(communicator, back, 0);
    CHECK(back == all);
  });
}
