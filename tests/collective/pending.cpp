// SPDX-License-Identifier: Apache-2.0
#include "meshwise/collective/pending.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

#include "meshwise/collective/all_gather.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/all_to_all.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/collective/broadcast.hpp"
#include "meshwise/collective/prepared.hpp"
#include "meshwise/collective/reduce_scatter.hpp"
#include "support.hpp"

using namespace test;

namespace {

/// Ten of one and ten of the other.
std::vector<int> halves(int first, int second) {
  std::vector<int> result(10, first);
  result.insert(result.end(), 10, second);
  return result;
}

}  // namespace

TEST_CASE("wait gives spans of what was lent and containers that were moved in") {
  on_both(3, [](Communicator& communicator) {
    const std::vector<int> in(10, 1);
    std::vector<int> out(10);
    Pending<std::span<int>> lent = start_all_reduce(communicator, in, out);
    const std::span<int> result = lent.wait();
    require(result.data() == out.data() && result.size() == 10 && out[9] == 3, "lent");

    Pending<std::vector<int>> given = start_all_reduce(communicator, std::vector<int>(7, 2));
    require(given.wait() == std::vector<int>(7, 6), "given");

    std::vector<int> moved =
        start_all_to_all(communicator, std::vector<int>(6, communicator.rank()), std::vector<int>(6)).wait();
    require(moved == std::vector<int>{0, 0, 1, 1, 2, 2}, "both given");

    std::array<int, 3> fixed{};
    fixed[static_cast<std::size_t>(communicator.rank())] = 5;
    require(start_all_gather(communicator, std::move(fixed)).wait() == std::array<int, 3>{5, 5, 5}, "an array");

    std::vector<int> whole(9, communicator.rank());
    const std::span<int> own = start_reduce_scatter(communicator, whole).wait();
    require(own.data() == whole.data() + 3 * communicator.rank() && own.size() == 3 && own[0] == 3, "the own block");

    start_barrier(communicator).wait();
    Pending<std::vector<float>> none = start_broadcast(communicator, std::vector<float>());
    require(none.wait().empty(), "nothing");
  });
}

TEST_CASE("test makes progress, and many are in flight at a time") {
  for (const int ranks : {1, 2, 5}) {
    on_both(ranks, [&](Communicator& communicator) {
      std::vector<Pending<std::vector<int>>> flying;
      for (int k = 0; k < 20; ++k) {
        flying.push_back(start_all_reduce(communicator, std::vector<int>(static_cast<std::size_t>(k * 50), k)));
      }
      // The last one is complete only when all before it are.
      while (!flying.back().test()) {}
      for (std::size_t k = 0; k < flying.size(); ++k) {
        require(flying[k].test(), "complete in order");
        const std::vector<int> result = flying[k].wait();
        require(result == std::vector<int>(k * 50, static_cast<int>(k) * ranks), "result");
      }
      auto behind = start_all_reduce(communicator, std::vector<int>(3, 1));
      std::vector<int> blocking(3, 2);
      all_reduce(communicator, blocking);
      require(blocking[0] == 2 * ranks && behind.wait()[0] == ranks, "a blocking call completes what was started");
      require(communicator.traffic().calls == 22, "each counts once");
    });
  }
}

TEST_CASE("operations of several communicators are in flight at once") {
  on_both(4, [](Communicator& world) {
    Communicator row = world.split(world.rank() / 2);
    Communicator column = world.split(world.rank() % 2);
    for (int k = 0; k < 30; ++k) {
      auto one = start_all_reduce(row, std::vector<int>(100, 1));
      auto two = start_all_gather(column, std::vector<int>(20, world.rank()));
      auto three = start_all_reduce<Max>(world, std::vector<int>(3, world.rank() + k));
      if (k % 3 == 0) {
        // Each rank in an order of its own, taking turns.
        const bool turned = world.rank() % 2 == 1;
        for (bool done = false; !done;) {
          done = turned ? two.test() : one.test();
          done = three.test() && done;
          done = (turned ? one.test() : two.test()) && done;
        }
      } else if (k % 3 == 1) {
        three.wait();
      }
      require(two.wait() == (world.rank() % 2 == 0 ? halves(0, 2) : halves(1, 3)), "column");
      if (k % 3 != 1) require(three.wait() == std::vector<int>(3, 3 + k), "world");
      require(one.wait() == std::vector<int>(100, 2), "row");
    }
  });
}

TEST_CASE("a Pending can be moved, dropped, and used only once") {
  launch(2, [](Communicator& communicator) {
    Pending<std::vector<int>> empty;
    require(!empty.pending(), "empty");
    refuse([&] { empty.wait(); }, "a collective in flight");
    Pending<std::vector<int>> first = start_all_reduce(communicator, std::vector<int>(3, 1));
    Pending<std::vector<int>> second = std::move(first);
    require(!first.pending() && second.pending(), "moved");  // NOLINT: moved-from is specified
    refuse([&] { (void)first.test(); }, "it was moved from");
    require(second.wait()[0] == 2, "waited");
    refuse([&] { second.wait(); }, "its result was taken");
    std::vector<int> data(3, 1);
    { const auto dropped = start_all_reduce(communicator, data); }
    require(data[0] == 2, "the destructor waits");
    second = start_all_reduce(communicator, std::vector<int>(3, 5));
    second = start_all_reduce(communicator, std::vector<int>(3, 6));
    require(second.wait()[2] == 12, "assignment completes the one before");
  });
}

TEST_CASE("a Pending that dies while an exception passes aborts the group: nobody hangs") {
  for (const bool messages : both) {
    Setup setup;
    setup.messages = messages;
    setup.deadline = 60;
    const Outcome result = outcome(3, setup, [](Communicator& communicator) {
      std::vector<int> data(10000, 1);
      if (communicator.rank() == 1) {
        try {
          const auto dropped = start_all_reduce(communicator, data);
          throw std::runtime_error("stop");
        } catch (const std::runtime_error&) {}
      }
      barrier(communicator);
      std::vector<int> other(10000, 1);
      all_reduce(communicator, other);
      all_reduce(communicator, other);
    });
    for (const Code code : result.code) CHECK((code == Code::aborted || code == Code::mismatch));
    for (const std::string& text : result.text) CHECK(!text.empty());
  }
}

TEST_CASE("errors come out of wait, and the destructor keeps them to itself") {
  Setup setup;
  setup.deadline = 0.05;
  const Outcome result = outcome(2, setup, [](Communicator& communicator) {
    if (communicator.rank() == 1) {
      communicator.set_deadline(60);
      barrier(communicator);
    }
    { const auto dropped = start_broadcast(communicator, std::vector<int>(5), 1); }
    auto pending = start_all_reduce(communicator, std::vector<int>(5));
    pending.wait();
  });
  CHECK(!result.text[0].empty());
  CHECK(!result.text[1].empty());
}

TEST_CASE("arguments of started collectives are checked when they are started") {
  launch(2, [](Communicator& communicator) {
    std::vector<int> data(4);
    refuse([&] { (void)start_all_reduce(communicator, data, std::vector<int>(5)); }, "start_all_reduce (rank");
    refuse([&] { (void)prepare_all_to_all(communicator, std::vector<int>(5), std::vector<int>(5)); },
           "prepare_all_to_all (rank");
    Communicator empty;
    refuse([&] { (void)start_barrier(empty); }, "start_barrier: expected a communicator");
    barrier(communicator);
  });
}
