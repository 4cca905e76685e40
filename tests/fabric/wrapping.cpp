// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/wrapping.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../support/launch.hpp"
#include "calls.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/collective/group.hpp"
#include "meshwise/collective/send_receive.hpp"

using namespace meshwise;

namespace {

/// Changes nothing, and counts the groups that it wraps.
class Plain final : public WrappingEndpoint {
 public:
  Plain(Owned<Endpoint> inner, int& groups) : WrappingEndpoint(std::move(inner)), groups_(groups) { ++groups_; }

 private:
  Owned<Endpoint> wrap(Owned<Endpoint> child) override { return std::make_unique<Plain>(std::move(child), groups_); }

  int& groups_;
};

/// A fabric that can do nothing but be asked.
class Bare final : public Endpoint {
 public:
  Bare() : Endpoint(0, 1) {}
  Capabilities capabilities() const override { return {}; }
  bool run(const Call&) override { return false; }
  Owned<Running> start(const Call&) override { return nullptr; }
  Owned<Sending> post_send(const char*, int, std::uint64_t, const void*, std::size_t, double) override {
    return nullptr;
  }
  void receive(const char*, int, std::uint64_t, void*, std::size_t, double) override {}
  bool try_receive(const char*, int, std::uint64_t, void*, std::size_t) override { return false; }
  Owned<Endpoint> split(int, int) override { return nullptr; }
  void abort(const char*) noexcept override {}
};

Communicator wrapped(Communicator&& communicator, int& groups) {
  return Communicator(std::make_unique<Plain>(communicator.release(), groups));
}

/// All operations, blocking and started, and messages; returns the traffic.
Traffic program(Communicator& communicator) {
  const int ranks = communicator.size(), me = communicator.rank();
  std::vector<std::unique_ptr<calls::Case>> cases;
  std::vector<Owned<Running>> running;
  for (const Operation operation : calls::operations) {
    for (const std::size_t count : {std::size_t{0}, std::size_t{7}, std::size_t{5000}}) {
      for (const bool blocking : {true, false}) {
        cases.push_back(std::make_unique<calls::Case>(operation, ranks, rooted(operation) ? ranks - 1 : 0, count, me));
        if (blocking) {
          communicator.run(cases.back()->call());
        } else {
          running.push_back(communicator.endpoint().start(cases.back()->call()));
        }
      }
    }
  }
  for (const auto& one : running) one->wait();
  for (const auto& one : cases) CHECK_MESSAGE(one->right(), one->describe());
  std::vector<int> in(3), out(3, me);
  exchange(communicator, out, (me + 1) % ranks, in, (me + ranks - 1) % ranks);
  CHECK(in == std::vector<int>(3, (me + ranks - 1) % ranks));
  return communicator.traffic();
}

}  // namespace

TEST_CASE("whatever is done on a wrapped communicator is done as before, and counted as before") {
  for (int ranks = 1; ranks <= 5; ++ranks) {
    for (const bool messages : {false, true}) {
      std::vector<Traffic> before(static_cast<std::size_t>(ranks)), after(static_cast<std::size_t>(ranks));
      LaunchOptions options;
      options.messages = messages;
      launch(ranks, options, [&](Communicator& communicator) {
        before[static_cast<std::size_t>(communicator.rank())] = program(communicator);
      });
      launch(ranks, options, [&](Communicator& communicator) {
        int outer = 0, inner = 0;
        Communicator twice = wrapped(wrapped(std::move(communicator), inner), outer);
        CHECK(communicator.empty());
        after[static_cast<std::size_t>(twice.rank())] = program(twice);
        Communicator half = twice.split(twice.rank() % 2 == 0 ? 0 : -1);
        CHECK(half.empty() == (twice.rank() % 2 == 1));
        CHECK(outer == (half.empty() ? 1 : 2));
        CHECK(inner == outer);
        if (!half.empty()) program(half);
      });
      CHECK(before == after);
    }
  }
}

TEST_CASE("name, deadline and what was counted pass to the wrapper, and from it to what is wrapped") {
  launch(2, [](Communicator& communicator) {
    communicator.set_name("line");
    communicator.set_deadline(12);
    barrier(communicator);
    int groups = 0;
    Communicator around = wrapped(std::move(communicator), groups);
    CHECK(around.name() == "line");
    CHECK(around.deadline() == 12);
    CHECK(around.traffic().calls == 1);
    around.set_name("other");
    around.set_deadline(0.05);
    CHECK(around.split(0).name() == "other");
    CHECK(around.split(0).deadline() == 0.05);
    CHECK(around.explain(Operation::all_reduce, 8).find("direct") != std::string::npos);
    if (around.rank() == 1) {
      // Nobody answers.
      int item = 0;
      try {
        receive(around, std::span(&item, 1), 0);
        FAIL("received");
      } catch (const Error& error) {
        CHECK(error.code() == Code::timed_out);
        CHECK(std::string(error.what()).find("axis other") != std::string::npos);
        CHECK(std::string(error.what()).find("0.05") != std::string::npos);
      }
    } else {
      CHECK_THROWS_AS(barrier(around), Error);
    }
  });
}

TEST_CASE("every wait goes on with what a wrapped communicator expects") {
  for (const std::size_t size : {std::size_t{1}, std::size_t{100'000}}) {
    launch(3, [size](Communicator& communicator) {
      Communicator other = communicator.split(0);
      int groups = 0;
      Communicator around = wrapped(std::move(communicator), groups);
      const int me = around.rank();
      std::vector<int> in(2 * size);
      const std::vector<int> out(size, me);
      if (me == 0) {
        // The senders come to the barrier only when their messages have been received.
        auto first = start_group(around, [&](Group& g) { g.receive(std::span(in).first(size), 1); });
        auto second = start_group(around, [&](Group& g) { g.receive(std::span(in).subspan(size), 2); });
        barrier(other);
        first.wait();
        second.wait();
        CHECK(in.front() == 1);
        CHECK(in.back() == 2);
      } else {
        send(around, out, 0);
        barrier(other);
      }
    });
  }
}

TEST_CASE("abort, differences and leaving are those of what is wrapped") {
  CHECK_THROWS_WITH_AS(launch(2,
                              [](Communicator& communicator) {
                                int groups = 0;
                                communicator = wrapped(std::move(communicator), groups);
                                std::vector<int> data(communicator.rank() == 0 ? 3 : 4);
                                all_reduce(communicator, data);
                              }),
                       doctest::Contains("the calls differ in the count"), Error);
  CHECK_THROWS_WITH_AS(launch(2,
                              [](Communicator& communicator) {
                                int groups = 0;
                                communicator = wrapped(std::move(communicator), groups);
                                if (communicator.rank() == 0) communicator.abort("enough");
                                if (communicator.rank() == 1) barrier(communicator);
                              }),
                       doctest::Contains("enough"), Error);
  launch(1, [](Communicator& communicator) {
    Communicator taken;
    CHECK_THROWS_WITH_AS((void)taken.release(), doctest::Contains("a communicator with at least one rank"), Error);
    communicator.abort("");
  });
}

TEST_CASE("a new generation is wrapped as what is split off") {
  launch(3, [](Communicator& job) {
    int groups = 0;
    Communicator world = wrapped(std::move(job), groups);
    world.set_name("line");
    Communicator same = world.split(0);  // what is set here is passed on when it is used
    const std::string record = world.flight_record();
    CHECK_MESSAGE(record.rfind("flight record of line, 3 ranks:\n", 0) == 0, record);
    Communicator next = world.shrink();
    CHECK(groups == 3);
    CHECK(next.size() == 3);
    CHECK(next.generation() == 1);
    CHECK(next.name() == "line");
    barrier(next);
  });
}

TEST_CASE("a fabric need neither keep a record nor go on without some of its ranks") {
  int groups = 0;
  Communicator alone = wrapped(Communicator(std::make_unique<Bare>()), groups);
  CHECK(alone.flight_record() == "this fabric keeps no record of what its ranks do\n");
  try {
    static_cast<void>(alone.shrink());
    FAIL_CHECK("no error");
  } catch (const Error& error) {
    CHECK(error.code() == Code::unsupported);
  }
}
