// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/memory/endpoint.hpp"

#include <doctest/doctest.h>

#include <sched.h>

#include <array>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../support/sanitized.hpp"
#include "../calls.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/broadcast.hpp"
#include "meshwise/collective/reduce_scatter.hpp"
#include "meshwise/fabric/thread/launch.hpp"

using namespace meshwise;

TEST_CASE("scratch grows with the largest call and is used again") {
  launch(5, [](Communicator& communicator) {
    for (const std::size_t size : {10U, 100000U, 7U, 200000U, 0U, 5U}) {
      std::vector<double> data(size, 1.0);
      const auto own = reduce_scatter(communicator, data, CollectiveOptions{Algorithm::ring, -1});
      bool right = true;
      for (const double item : own) right = right && item == 5.0;
      CHECK(right);
    }
  });
}

TEST_CASE("more kinds of calls than the cache holds") {
  launch(3, [](Communicator& communicator) {
    for (int k = 0; k < 200; ++k) {
      Communicator sub = communicator.split(0, -communicator.rank());
      for (const Algorithm algorithm : {Algorithm::direct, Algorithm::ring}) {
        std::vector<int> data(5, communicator.rank());
        broadcast(sub, data, k % 3, CollectiveOptions{algorithm, -1});
        CHECK(data[4] == 2 - k % 3);
      }
    }
  });
}

TEST_CASE("many groups come and go") {
  launch(4, [](Communicator& communicator) {
    for (int k = 0; k < 300; ++k) {
      Communicator sub = communicator.split((communicator.rank() + k) % 3 - 1);
      if (sub.empty()) continue;
      int data = 1;
      all_reduce(sub, std::span(&data, 1));
      CHECK(data == sub.size());
    }
  });
}

namespace {

/// Starts cases on a communicator and waits for them in an order that depends on the rank.
void many_in_flight(Communicator& communicator, unsigned seed) {
  std::vector<std::unique_ptr<calls::Case>> cases;
  std::vector<Owned<Running>> running;
  const int ranks = communicator.size();
  for (std::size_t k = 0; k < 12; ++k) {
    const auto draw = (seed * 2654435761U + static_cast<unsigned>(k) * 40503U) >> 7;
    const Operation operation = calls::operations[draw % 10];
    const int root = rooted(operation) ? static_cast<int>(draw / 10) % ranks : 0;
    const std::size_t counts[] = {0, 1, 3, 7, 64, 1000, 20000};
    cases.push_back(std::make_unique<calls::Case>(operation, ranks, root, counts[draw / 100 % 7], communicator.rank()));
    Call call = cases.back()->call();
    if (draw % 3 != 0 && Ring::supports(call.shape)) call.algorithm = Algorithm::ring;
    call.lanes = draw % 5 == 0 ? 3 : 1;
    if (k == 7) {
      communicator.endpoint().run(call);  // completes everything before it
      for (const auto& one : running) CHECK(one->test());
      running.push_back(nullptr);
    } else {
      running.push_back(communicator.endpoint().start(call));
    }
  }
  for (std::size_t k = 0; k < running.size(); ++k) {
    const std::size_t at = (k * 5 + static_cast<std::size_t>(communicator.rank())) % running.size();
    if (running[at] != nullptr) {
      if ((k + seed) % 2 == 0) {
        running[at]->wait();
      } else {
        while (!running[at]->test()) detail::relax();
      }
      CHECK(running[at]->test());
    }
    CHECK_MESSAGE(cases[at]->right(), cases[at]->describe());
  }
}

/// An all_reduce of `size` ones, by a ring so that it takes several steps.
struct Ones {
  std::vector<std::int64_t> in;
  std::vector<std::int64_t> out;
  std::size_t count;

  explicit Ones(std::size_t size) : in(size, 1), out(size, -1), count(size) {}
  Ones(const Ones&) = delete;
  Ones& operator=(const Ones&) = delete;

  Call call(int ranks) {
    Call result;
    result.verb = "all_reduce";
    result.shape.ranks = ranks;
    result.element = ElementKind::i64;
    result.element_size = 8;
    result.count = count;
    result.algorithm = Algorithm::ring;
    result.reduction = ReductionKind::sum;
    result.kernel = reduce_kernel<std::int64_t, Sum>();
    result.input = in.data();
    result.output = out.data();
    result.regions = Regions{&calls::region, &count, 0};
    return result;
  }
  bool sums_to(int ranks) const {
    for (const std::int64_t value : out) {
      if (value != ranks) return false;
    }
    return true;
  }
};

void idle(int milliseconds) {
  const std::int64_t end = monotonic_nanoseconds() + std::int64_t{1'000'000} * milliseconds;
  while (monotonic_nanoseconds() < end) sched_yield();
}

LaunchOptions by(bool messages) {
  LaunchOptions options;
  options.messages = messages;
  return options;
}

}  // namespace

TEST_CASE("operations in flight, waited for and tested in any order") {
  for (const bool messages : {false, true}) {
    for (int ranks = 1; ranks <= 6; ++ranks) {
      launch(ranks, by(messages), [](Communicator& communicator) {
        for (unsigned seed = 0; seed < (building::sanitized ? 2 : 6); ++seed) many_in_flight(communicator, seed);
      });
    }
  }
}

TEST_CASE("two communicators in flight, in another order on every rank") {
  for (const bool messages : {false, true}) {
    launch(3, by(messages), [](Communicator& world) {
      Communicator other = world.split(0, -world.rank());
      for (int k = 0; k < 50; ++k) {
        Ones a(1000);
        Ones b(3000);
        Communicator& first = world.rank() % 2 == 0 ? world : other;
        Communicator& second = world.rank() % 2 == 0 ? other : world;
        const auto one = first.endpoint().start((world.rank() % 2 == 0 ? a : b).call(3));
        const auto two = second.endpoint().start((world.rank() % 2 == 0 ? b : a).call(3));
        bool done = false;
        while (!done) {
          done = one->test();
          done = two->test() && done;
        }
        CHECK(a.sums_to(3));
        CHECK(b.sums_to(3));
      }
    });
  }
}

TEST_CASE("a wait for a message goes on with what was started") {
  for (const bool messages : {false, true}) {
    launch(3, by(messages), [](Communicator& communicator) {
      Endpoint& endpoint = communicator.endpoint();
      for (int k = 0; k < 20; ++k) {
        Ones ones(500);
        const auto running = endpoint.start(ones.call(3));
        std::vector<int> token(100000, 1);
        // The others complete the operation before they answer, which they cannot without this rank's part in it.
        if (communicator.rank() == 0) {
          endpoint.receive("test", 1, 1, token.data(), token.size() * sizeof(int), -1);
          endpoint.post_send("test", 2, 1, token.data(), token.size() * sizeof(int), -1)->wait();
        }
        if (communicator.rank() == 2) {
          endpoint.receive("test", 0, 1, token.data(), token.size() * sizeof(int), -1);
        }
        running->wait();
        if (communicator.rank() == 1) {
          endpoint.post_send("test", 0, 1, token.data(), token.size() * sizeof(int), -1)->wait();
        }
        CHECK(ones.sums_to(3));
      }
    });
  }
}

TEST_CASE("the deadline of a started operation runs from the first wait") {
  for (const bool messages : {false, true}) {
    std::vector<Report> reports(2);
    std::atomic<bool> ended{false};
    launch(2, by(messages), [&](Communicator& communicator) {
      Ones ones(100);
      try {
        if (communicator.rank() == 0) {
          Call call = ones.call(2);
          call.deadline = 0.02;
          const auto running = communicator.endpoint().start(call);
          for (int k = 0; k < 20; ++k) {
            idle(3);
            CHECK(!running->test());
          }
          running->wait();
        } else {
          // Comes when the other one has given up.
          while (!ended) idle(1);
          communicator.endpoint().run(ones.call(2));
        }
      } catch (const Error& error) {
        reports[static_cast<std::size_t>(communicator.rank())] = error.report();
      }
      ended = true;
    });
    CHECK(reports[0].code == Code::timed_out);
    CHECK(reports[0].ranks == std::vector<int>{1});
    CHECK(reports[1].code == Code::timed_out);
  }
}

TEST_CASE("an operation that is given up ends the group, and nobody touches its memory any more") {
  for (const bool messages : {false, true}) {
    for (int k = 0; k < 40; ++k) {
      std::vector<Code> codes(3, Code::invalid_argument);
      launch(3, by(messages), [&](Communicator& communicator) {
        // Freed at once after that, for the sanitizers.
        const auto ones = std::make_unique<Ones>(30000);
        const auto more = std::make_unique<Ones>(20000);
        try {
          const auto running = communicator.endpoint().start(ones->call(3));
          const auto second = communicator.endpoint().start(more->call(3));
          if (communicator.rank() == k % 3) {
            for (int spin = 0; spin < k * 50; ++spin) detail::relax();
            running->test();
            return;
          }
          running->wait();
          second->wait();
          codes[static_cast<std::size_t>(communicator.rank())] = Code::unsupported;  // it was too late
        } catch (const Error& error) {
          codes[static_cast<std::size_t>(communicator.rank())] = error.code();
        }
      });
      for (int rank = 0; rank < 3; ++rank) {
        const Code code = codes[static_cast<std::size_t>(rank)];
        if (rank == k % 3) continue;
        CHECK((code == Code::aborted || code == Code::unsupported));
      }
    }
  }
}

TEST_CASE("an exception between start and wait gives the operation up") {
  for (const bool messages : {false, true}) {
    CHECK_THROWS_WITH_AS(launch(3, by(messages),
                                [](Communicator& communicator) {
                                  Ones ones(10000);
                                  const auto running = communicator.endpoint().start(ones.call(3));
                                  if (communicator.rank() == 1) throw std::runtime_error("in between");
                                  running->wait();
                                  communicator.endpoint().run(ones.call(3));
                                }),
                         "in between", std::runtime_error);
  }
}

TEST_CASE("an error does not wait for a rank that computes with an operation unfinished") {
  std::atomic<bool> informed{false};
  std::atomic<bool> started{false};
  std::atomic<bool> resting{false};
  launch(3, [&](Communicator& communicator) {
    Ones ones(1000);
    if (communicator.rank() == 0) {
      const auto running = communicator.endpoint().start(ones.call(3));
      CHECK(!running->test());
      resting = true;
      // No call in here: the others must get their errors without.
      while (!informed) sched_yield();
      CHECK_THROWS_AS(running->wait(), Error);
      CHECK_THROWS_AS((void)communicator.endpoint().start(ones.call(3)), Error);
    } else if (communicator.rank() == 1) {
      const auto running = communicator.endpoint().start(ones.call(3));
      started = true;
      while (!resting) sched_yield();
      try {
        running->wait();
        FAIL("complete");
      } catch (const Error& error) {
        CHECK(error.code() == Code::aborted);
        informed = true;
      }
    } else {
      while (!started || !resting) sched_yield();
      communicator.abort("for a test");
    }
  });
}

TEST_CASE("a mismatch with a started operation names both calls") {
  std::vector<std::string> texts(2);
  launch(2, [&](Communicator& communicator) {
    Ones ones(communicator.rank() == 0 ? 100U : 101U);
    try {
      const auto running = communicator.endpoint().start(ones.call(2));
      while (!running->test()) detail::relax();
    } catch (const Error& error) {
      texts[static_cast<std::size_t>(communicator.rank())] = error.what();
    }
  });
  for (const std::string& text : texts) {
    CHECK(text.find("all_reduce(100 x i64, sum, ring)") != std::string::npos);
    CHECK(text.find("all_reduce(101 x i64, sum, ring)") != std::string::npos);
  }
}

TEST_CASE("an operation may outlive its communicator, which then has given it up") {
  std::atomic<bool> started{false};
  launch(2, [&](Communicator& world) {
    Ones ones(100);
    Owned<Running> running;
    {
      Communicator pair = world.split(0);
      if (world.rank() == 0) {
        running = pair.endpoint().start(ones.call(2));
        CHECK_FALSE(running->test());  // the other rank waits for this
        started = true;
      }
      if (world.rank() == 1) {
        while (!started) sched_yield();
        CHECK_THROWS_AS(pair.endpoint().run(ones.call(2)), Error);
      }
    }
    if (running) CHECK_THROWS_AS(running->wait(), Error);
    all_reduce(world, std::vector<int>(3), std::vector<int>(3));
  });
}

TEST_CASE("an operation on a group of one, and of nothing, is complete when it is started or soon") {
  launch(1, [](Communicator& communicator) {
    Ones ones(100);
    CHECK(communicator.endpoint().start(ones.call(1))->test());
    CHECK(ones.sums_to(1));
  });
  launch(3, [](Communicator& communicator) {
    Ones none(0);
    const auto running = communicator.endpoint().start(none.call(3));
    running->wait();
  });
}

namespace {

/// A kernel that fails on one rank only, as a reduction of the program's may.
void failing(std::size_t, const void* const*, int, void* const*, int, bool) { throw std::runtime_error("it is full"); }

}  // namespace

TEST_CASE("a reduction that throws ends the group on every rank, in small calls and large, blocking and started") {
  for (const bool messages : {false, true}) {
    for (const std::size_t count : {std::size_t{3}, std::size_t{50000}}) {
      for (const bool started : {false, true}) {
        std::array<std::string, 3> texts;
        launch(3, LaunchOptions{20, messages}, [&](Communicator& world) {
          Communicator group = world.split(0);
          calls::Case one(Operation::all_reduce, 3, 0, count, world.rank());
          Call call = one.call();
          if (world.rank() == 1) call.kernel = &failing;
          try {
            if (started) {
              group.endpoint().start(call)->wait();
            } else {
              group.endpoint().run(call);
            }
            calls::Case next(Operation::all_reduce, 3, 0, 3, world.rank());
            group.endpoint().run(next.call());
          } catch (const Error& error) {
            texts[static_cast<std::size_t>(world.rank())] = error.what();
            CHECK(error.code() == Code::aborted);
          }
        });
        for (const std::string& text : texts) CHECK_MESSAGE(text.find("it is full") != std::string::npos, text);
      }
    }
  }
}
