// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/memory/agenda.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "../../support/sanitized.hpp"
#include "../calls.hpp"
#include "meshwise/collective/communicator.hpp"
#include "meshwise/fabric/thread/launch.hpp"

using namespace meshwise;

namespace {

struct Counting final : detail::Backlog {
  bool advance_aside() override {
    ++turns;
    if (fails) throw std::runtime_error("no");
    return false;
  }
  int turns = 0;
  bool fails = false;
};

}  // namespace

TEST_CASE("everything on the agenda has its turn, however much it is") {
  detail::Agenda agenda;
  CHECK(agenda.empty());
  agenda.advance();
  std::vector<Counting> items(40);
  for (Counting& item : items) agenda.add(&item);
  for (int k = 0; k < 12; ++k) agenda.advance();
  for (const Counting& item : items) CHECK(item.turns >= 2);
  for (Counting& item : items) agenda.remove(&item);
  CHECK(agenda.empty());
}

TEST_CASE("what fails is left to its own wait") {
  detail::Agenda agenda;
  Counting bad, good;
  bad.fails = true;
  agenda.add(&bad);
  agenda.add(&good);
  for (int k = 0; k < 3; ++k) agenda.advance();
  CHECK(bad.turns == 1);
  CHECK(good.turns == 3);
  agenda.remove(&bad);  // once more is harmless
  agenda.remove(&good);
  CHECK(agenda.empty());
}

TEST_CASE("a thread goes on with its own operations only") {
  detail::Agenda agenda;
  Counting item;
  agenda.add(&item);
  std::thread([&] { agenda.advance(); }).join();
  CHECK(item.turns == 0);
  agenda.remove(&item);
}

TEST_CASE("operations of several communicators, completed in another order on every rank") {
  for (const bool messages : {false, true}) {
    for (const int ranks : {2, 3, 5}) {
      launch(ranks, LaunchOptions{20, messages}, [&](Communicator& world) {
        constexpr int groups = 4;
        std::vector<Communicator> communicators;
        for (int g = 0; g < groups; ++g) communicators.push_back(world.split(0, g % 2 == 0 ? 0 : -world.rank()));
        for (int k = 0; k < (building::sanitized ? 10 : 20); ++k) {
          std::vector<std::unique_ptr<calls::Case>> cases;
          std::vector<Owned<Running>> running;
          for (Communicator& one : communicators) {
            for (const std::size_t count : {std::size_t{3}, std::size_t{20000}}) {
              const Operation operation = calls::operations[static_cast<std::size_t>(k) % std::size(calls::operations)];
              cases.push_back(std::make_unique<calls::Case>(operation, ranks, 0, count, one.rank()));
              running.push_back(one.endpoint().start(cases.back()->call()));
            }
          }
          const std::size_t number = running.size();
          for (std::size_t i = 0; i < number; ++i) {
            const auto turn = static_cast<std::size_t>(world.rank() * 3 + k);
            running[(world.rank() % 2 == 0 ? i + turn : number - 1 - i + turn) % number]->wait();
          }
          for (const auto& one : cases) CHECK_MESSAGE(one->right(), one->describe());
        }
      });
    }
  }
}

TEST_CASE("a message or a blocking call on one communicator does not hold up what was started on another") {
  launch(2, LaunchOptions{20}, [](Communicator& world) {
    Communicator other = world.split(0);
    for (int k = 0; k < 20; ++k) {
      calls::Case one(Operation::all_reduce, 2, 0, 50000, other.rank());
      calls::Case two(Operation::all_gather, 2, 0, 30000, world.rank());
      std::vector<char> large(100000, 'x');
      const auto running = other.endpoint().start(one.call());
      if (world.rank() == 0) {
        running->wait();
        world.endpoint().post_send("send", 1, 1, large.data(), large.size(), -1)->wait();
      } else {
        world.endpoint().receive("receive", 0, 1, large.data(), large.size(), -1);
        running->wait();
      }
      const auto again = other.endpoint().start(one.call());
      if (world.rank() == 1) again->wait();
      world.endpoint().run(two.call());
      if (world.rank() == 0) again->wait();
      CHECK(one.right());
      CHECK(two.right());
    }
  });
}

TEST_CASE("ranks that wait for two communicators in opposite order come out of both when these are aborted") {
  for (int k = 0; k < (building::sanitized ? 75 : 300); ++k) {
    launch(3, LaunchOptions{20}, [](Communicator& world) {
      Communicator one = world.split(0), two = world.split(0);
      if (world.rank() == 2) {
        one.abort("test");
        two.abort("test");
        return;
      }
      calls::Case first(Operation::all_reduce, 3, 0, 20000, world.rank());
      calls::Case second(Operation::all_reduce, 3, 0, 20000, world.rank());
      Communicator& started = world.rank() == 0 ? one : two;
      Communicator& blocking = world.rank() == 0 ? two : one;
      int errors = 0;
      try {
        const auto running = started.endpoint().start(first.call());
        try {
          blocking.endpoint().run(second.call());
        } catch (const Error&) {
          ++errors;
        }
        running->wait();
      } catch (const Error&) {
        ++errors;
      }
      CHECK(errors >= 1);
    });
  }
}
