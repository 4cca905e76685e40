// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/memory/succession.hpp"

#include <doctest/doctest.h>
#include <sched.h>

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "../calls.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/fabric/memory/successor.hpp"
#include "meshwise/fabric/thread/job.hpp"
#include "meshwise/fabric/thread/launch.hpp"

using namespace meshwise;

namespace {

/// All operations, small and large, on a communicator.
void work_on(Communicator& world) {
  for (const Operation operation : calls::operations) {
    for (const std::size_t count : {std::size_t{3}, std::size_t{20000}}) {
      calls::Case one(operation, world.size(), 0, count, world.rank());
      world.run(one.call());
      CHECK_MESSAGE(one.right(), one.describe());
    }
  }
}

LaunchOptions quiet(double deadline, bool messages = false) {
  LaunchOptions options;
  options.deadline = deadline;
  options.messages = messages;
  options.settings = Settings{};
  options.settings->log = LogLevel::off;
  return options;
}

}  // namespace

TEST_CASE("a successor is what has been published, and nothing that cannot be one") {
  const std::vector<int> members{1, 4, 5};
  alignas(detail::Successor) std::byte memory[sizeof(detail::Successor) + 3 * sizeof(std::int32_t)];
  auto* const successor = new (memory) detail::Successor(members);
  CHECK(successor->members(6) == members);
  CHECK(successor->members(5).empty());
  CHECK(successor->members(2).empty());
  auto* const words = reinterpret_cast<std::int32_t*>(memory + sizeof(detail::Successor));
  words[2] = 4;
  CHECK(successor->members(6).empty());
  words[2] = -1;
  CHECK(successor->members(6).empty());
}

TEST_CASE("ranks that come are the new generation, in the old order, whoever is lost") {
  for (const bool messages : {false, true}) {
    for (const int ranks : {1, 2, 3, 5}) {
      for (int lost = -1; lost < ranks; lost += 1 + ranks / 4) {
        if (ranks == 1 && lost == 0) continue;
        std::atomic<int> there{0};
        launch(ranks, quiet(20, messages), [&](Communicator& world) {
          const int me = world.rank();
          try {
            work_on(world);
          } catch (const Error& error) {
            CHECK((error.code() == Code::aborted || error.code() == Code::peer_left));  // others are through already
          }
          if (me == lost) return;
          world.set_name("line");
          std::vector<int> data(10000, 1);
          if (lost >= 0) {
            CHECK_THROWS_AS(all_reduce(world, data), Error);
          }
          CHECK(world.generation() == 0);
          Communicator next = world.shrink();
          CHECK(next.size() == ranks - (lost >= 0 ? 1 : 0));
          CHECK(next.rank() == me - (lost >= 0 && me > lost ? 1 : 0));
          CHECK(next.generation() == 1);
          CHECK(next.name() == "line");
          CHECK(next.deadline() == 20);
          work_on(next);
          CHECK_THROWS_AS(barrier(world), Error);  // the old one stays what it is
          Communicator half = next.split(next.rank() % 2);
          CHECK(half.generation() == 1);
          work_on(half);
          ++there;  // a rank that shrinks ends the split of those that are not through
          while (there.load() < next.size()) sched_yield();
          Communicator third = next.shrink();
          CHECK(third.generation() == 2);
          CHECK(third.size() == next.size());
          work_on(third);
        });
      }
    }
  }
}

TEST_CASE("a rank that does not come in time is left outside, and cannot disturb") {
  for (const int late : {0, 1, 3}) {
    std::atomic<int> stage{0};
    std::string texts[2];
    launch(4, quiet(20), [&](Communicator& world) {
      const int me = world.rank();
      barrier(world);
      if (me == late) {
        while (stage.load() < 3) sched_yield();
        try {
          barrier(world);
        } catch (const Error& error) {
          texts[0] = error.what();
        }
        try {
          const Communicator next = world.shrink();
        } catch (const Error& error) {
          texts[1] = error.what();
          CHECK(error.code() == Code::aborted);
          CHECK(error.report().ranks == std::vector<int>{late});
        }
        stage = 4;
        return;
      }
      std::vector<int> data(5000, 1);
      world.set_deadline(0.1);
      CHECK_THROWS_AS(all_reduce(world, data), Error);
      world = world.shrink(0.1);
      CHECK(world.size() == 3);
      world.set_deadline(20);
      const auto work = [&] {
        for (int k = 0; k < 50; ++k) {
          std::vector<int> again(5000, k);
          all_reduce(world, again);
          CHECK(again == std::vector<int>(5000, 3 * k));
        }
      };
      stage.fetch_add(1);
      work();
      while (stage.load() < 4) sched_yield();
      work();
    });
    CHECK_MESSAGE(texts[0].find("still waiting for rank " + std::to_string(late)) != std::string::npos, texts[0]);
    CHECK_MESSAGE(
        texts[1].find("rank " + std::to_string(late) + " is not part of the new generation") != std::string::npos,
        texts[1]);
  }
}

TEST_CASE("whoever publishes first decides for all, and what the others have made goes") {
  for (int round = 0; round < 50; ++round) {
    const auto job = std::make_shared<detail::ThreadJob>(4);
    const auto group = detail::MemoryGroup::make(job, Topology::flat(4), false);
    for (const int rank : {1, 2, 3}) {
      group->slot(rank).state = detail::MemorySlot::State::shrinking;
      group->slot(rank).looked = monotonic_nanoseconds() + 10'000'000'000;
    }
    group->slot(0).state = detail::MemorySlot::State::gone;
    std::vector<const detail::Successor*> found(4);
    std::vector<std::shared_ptr<detail::MemoryGroup>> made(4);
    std::vector<std::thread> threads;
    for (const int rank : {1, 2, 3}) {
      threads.emplace_back([&, rank] {
        if (rank == 1) group->slot(1).state = detail::MemorySlot::State::left;  // for a moment another one leads
        if (rank == 1) group->slot(1).state = detail::MemorySlot::State::shrinking;
        detail::Succession succession(*group, rank, 20);
        found[static_cast<std::size_t>(rank)] = succession.await([] {});
        made[static_cast<std::size_t>(rank)] = succession.made();
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(found[1] != nullptr);
    CHECK(found[1] == found[2]);
    CHECK(found[1] == found[3]);
    const std::vector<int> members = found[1]->members(4);
    CHECK((members == std::vector<int>{1, 2, 3} || members == std::vector<int>{2, 3}));
    int makers = 0;
    for (const auto& one : made) makers += one ? 1 : 0;
    CHECK(makers == 1);
  }
}

TEST_CASE("one call for each communicator, with a number") {
  launch(2, quiet(20), [](Communicator& world) {
    CHECK_THROWS_WITH_AS(static_cast<void>(world.shrink(std::nan(""))), doctest::Contains("shrink (rank "), Error);
    Communicator next = world.shrink();
    CHECK(next.size() == 2);
    CHECK_THROWS_WITH_AS(static_cast<void>(world.shrink()), doctest::Contains("one call for each communicator"), Error);
    barrier(next);
  });
  CHECK(Communicator().generation() == 0);
  CHECK_THROWS_AS(static_cast<void>(Communicator().shrink()), Error);
}

TEST_CASE("operations in flight are dropped, and those of other groups go on meanwhile") {
  launch(3, quiet(20), [](Communicator& world) {
    Communicator other = world.split(0, -world.rank());
    calls::Case dropped(Operation::all_reduce, 3, 0, 20000, world.rank());
    calls::Case kept(Operation::all_gather, 3, 0, 20000, other.rank());
    Communicator next;
    {
      Owned<Running> lost;
      try {
        if (world.rank() != 2) lost = world.endpoint().start(dropped.call());
      } catch (const Error&) {  // rank 2 has ended the group by now
      }
      const auto running = other.endpoint().start(kept.call());
      if (world.rank() == 1) running->wait();  // which takes all ranks, two of which wait for a new generation
      next = world.shrink();
      running->wait();
      CHECK(kept.right());
      if (lost) CHECK_THROWS_AS(lost->wait(), Error);
    }
    work_on(next);
    work_on(other);
  });
}
