// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/delaying/endpoint.hpp"

#include <doctest/doctest.h>

#include <sched.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../../support/launch.hpp"
#include "../../support/sanitized.hpp"
#include "../calls.hpp"
#include "meshwise/collective/all_gather.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/collective/group.hpp"
#include "meshwise/collective/send_receive.hpp"
#include "meshwise/fabric/delaying/launch.hpp"

using namespace meshwise;

namespace {

constexpr Landing landings[] = {Landing::late, Landing::at_once, Landing::mixed};

Delays slow(Landing landing, double alpha, double jitter = 0, std::uint64_t seed = 1) {
  Delays delays;
  delays.alpha = alpha;
  delays.jitter = jitter;
  delays.seed = seed;
  delays.landing = landing;
  return delays;
}

LaunchOptions by(bool messages) {
  LaunchOptions options;
  options.messages = messages;
  options.deadline = 30;
  return options;
}

double seconds_since(std::int64_t begin) { return static_cast<double>(monotonic_nanoseconds() - begin) * 1e-9; }

/// Operations of three communicators in flight at once, beside messages, completed in an order that each rank draws.
/// Adds what it got to `heard`.
void many_in_flight(Communicator& world, std::uint64_t seed, std::vector<std::int64_t>& heard) {
  const int ranks = world.size(), me = world.rank();
  Communicator reversed = world.split(0, -me);
  Communicator half = world.split(me % 2, me);
  Communicator* const lines[] = {&world, &reversed, &half};
  std::vector<std::unique_ptr<calls::Case>> cases;
  std::vector<Owned<Running>> running;
  std::vector<std::vector<std::int64_t>> letters;
  std::vector<Pending<void>> groups;
  letters.reserve(100);
  for (std::uint64_t k = 0; k < 24; ++k) {
    const std::uint64_t draw = random_bits(seed, k) >> 8;
    Communicator& line = *lines[k % 3];
    const Operation operation = calls::operations[draw % 10];
    const int root = rooted(operation) ? static_cast<int>(draw / 10 % 1000) % line.size() : 0;
    const std::size_t counts[] = {0, 1, 3, 7, 64, 1000, 20000};
    cases.push_back(std::make_unique<calls::Case>(operation, line.size(), root, counts[draw / 10000 % 7], line.rank()));
    if (draw % 7 == 0) {
      line.endpoint().run(cases.back()->call());
      running.push_back(nullptr);
    } else {
      running.push_back(line.endpoint().start(cases.back()->call()));
    }
    if (k % 4 == 0) {
      const std::size_t length = draw % 3 == 0 ? 10'000 : draw % 3;  // copied by the fabric, or read where it lies
      letters.emplace_back(length, me);
      letters.emplace_back(length, -1);
      groups.push_back(start_group(world, [&](Group& g) {
        g.send(letters[letters.size() - 2], (me + 1) % ranks, static_cast<int>(k % 8));
        g.receive(letters.back(), (me + ranks - 1) % ranks, static_cast<int>(k % 8));
      }));
    }
  }
  for (std::size_t k = 0; k < running.size(); ++k) {
    const std::size_t at = (k * 5 + static_cast<std::size_t>(me)) % running.size();
    if (running[at] != nullptr) {
      if ((k + seed) % 2 == 0) {
        running[at]->wait();
      } else {
        while (!running[at]->test()) detail::relax();
      }
      CHECK(running[at]->test());
    }
    if (k % 4 == 3) {
      Pending<void>& group = groups[(k / 4 + static_cast<std::size_t>(me)) % groups.size()];
      if (me % 2 == 0) {
        while (!group.test()) detail::relax();
      }
      group.wait();
    }
  }
  for (const auto& one : cases) {
    CHECK_MESSAGE(one->right(), one->describe());
    heard.insert(heard.end(), one->out.begin(), one->out.end());
  }
  for (const auto& letter : letters) heard.insert(heard.end(), letter.begin(), letter.end());
  for (Communicator* const line : lines) {
    heard.push_back(static_cast<std::int64_t>(line->traffic().moved));
    heard.push_back(static_cast<std::int64_t>(line->traffic().messages));
  }
}

}  // namespace

TEST_CASE("a program gives the same results, and the same traffic, with any delays") {
  constexpr std::uint64_t seeds = building::sanitized ? 1 : 3;
  for (const bool messages : {false, true}) {
    for (int ranks = 1; ranks <= 5; ++ranks) {
      const auto number = static_cast<std::size_t>(ranks);
      std::vector<std::vector<std::int64_t>> wanted(number);
      launch(ranks, by(messages), [&](Communicator& communicator) {
        auto& own = wanted[static_cast<std::size_t>(communicator.rank())];
        for (std::uint64_t seed = 0; seed < seeds; ++seed) many_in_flight(communicator, seed, own);
      });
      for (const Landing landing : landings) {
        std::vector<std::vector<std::int64_t>> found(number);
        launch_delayed(ranks, by(messages), slow(landing, 0, 5e-4, static_cast<std::uint64_t>(ranks)),
                       [&](Communicator& communicator) {
                         auto& own = found[static_cast<std::size_t>(communicator.rank())];
                         for (std::uint64_t seed = 0; seed < seeds; ++seed) many_in_flight(communicator, seed, own);
                       });
        CHECK(found == wanted);
      }
    }
  }
}

TEST_CASE("nothing is complete before its time, blocking or started, collective or message") {
  for (const Landing landing : landings) {
    Delays delays = slow(landing, 0.02);
    delays.beta = 1e-6;
    std::array<std::atomic<std::int64_t>, 2> sent{};
    launch_delayed(2, delays, [&](Communicator& communicator) {
      const int me = communicator.rank(), other = 1 - me;
      std::vector<double> data(1000, 1.0);  // 8000 bytes of volume
      std::int64_t begin = monotonic_nanoseconds();
      all_reduce(communicator, data);
      CHECK(seconds_since(begin) >= 0.028);
      CHECK(data[7] == 2);

      begin = monotonic_nanoseconds();
      auto pending = start_all_reduce(communicator, data);
      if (seconds_since(begin) < 0.028) {
        const bool complete = pending.test();
        CHECK((!complete || seconds_since(begin) >= 0.028));
      }
      pending.wait();
      CHECK(seconds_since(begin) >= 0.028);
      CHECK(data[7] == 4);

      begin = monotonic_nanoseconds();
      barrier(communicator);
      CHECK(seconds_since(begin) >= 0.02);

      std::vector<double> in(20'000);
      const std::vector<double> out(20'000, me);  // 160 kB
      sent[static_cast<std::size_t>(me)] = monotonic_nanoseconds();
      exchange(communicator, out, other, in, other);
      CHECK(seconds_since(sent[static_cast<std::size_t>(other)]) >= 0.18);
      CHECK(in[100] == other);
      barrier(communicator);

      sent[static_cast<std::size_t>(me)] = monotonic_nanoseconds();
      auto loop = start_group(communicator, [&](Group& g) {
        g.send(std::span(out).first(1), other);
        g.receive(std::span(in).first(1), other);
      });
      while (!loop.test()) detail::relax();
      loop.wait();
      CHECK(seconds_since(sent[static_cast<std::size_t>(other)]) >= 0.02);
    });
  }
}

TEST_CASE("groups of one and messages to oneself are not delayed") {
  const std::int64_t begin = monotonic_nanoseconds();
  launch_delayed(1, slow(Landing::late, 1e6), [](Communicator& communicator) {
    std::vector<int> data{1, 2}, in(2);
    all_reduce(communicator, data);
    start_all_reduce(communicator, data).wait();
    barrier(communicator);
    exchange(communicator, data, 0, in, 0);
    CHECK(in == data);
    CHECK(communicator.split(0).size() == 1);
  });
  CHECK(seconds_since(begin) < 1e6);
}

TEST_CASE("operations of one communicator complete in order, those of several in one that each rank draws") {
  launch_delayed(2, slow(Landing::mixed, 0, 5e-3), [&](Communicator& world) {
    Communicator other = world.split(0);
    const std::int64_t one = 1;
    std::int64_t sums[3] = {};
    std::array<int, 3> seen{1, 0, 0};  // rounds; that world was first; that other was
    // A busy machine can hide which one is first, so that this goes on until every rank has seen both.
    while (seen[0] > 0) {
      auto a = start_all_reduce(world, std::span(&one, 1), std::span(sums, 1));
      auto b = start_all_reduce(world, std::span(&one, 1), std::span(sums + 1, 1));
      auto c = start_all_reduce(other, std::span(&one, 1), std::span(sums + 2, 1));
      for (bool complete = false; !complete;) {
        // What is asked for first and is complete was so before what is asked for next and is not.
        const bool second = b.test(), third = c.test(), first = a.test(), third_now = c.test();
        CHECK((first || !second));
        if (second && !third_now) seen[1] = 1;
        if (third && !first) seen[2] = 1;
        complete = second && third;
      }
      a.wait();
      b.wait();
      c.wait();
      CHECK(sums[0] + sums[1] + sums[2] == 6);
      std::int64_t missing = 2 - seen[1] - seen[2];
      all_reduce(world, std::span(&missing, 1));
      seen[0] = missing > 0 ? 1 : 0;
    }
  });
}

TEST_CASE("a transfer needs no core: what is computed meanwhile hides it") {
  for (const Landing landing : {Landing::late, Landing::at_once}) {
    launch_delayed(2, slow(landing, 0.03), [](Communicator& communicator) {
      std::vector<int> data(10, 1);
      const std::int64_t begin = monotonic_nanoseconds();
      auto pending = start_all_reduce(communicator, data);
      while (seconds_since(begin) < 0.04) {}
      pending.wait();
      // On a machine that does nothing else the wait is over at once; there is no bound that holds on every machine.
      CHECK(seconds_since(begin) >= 0.04);
      CHECK(data[3] == 2);
    });
  }
}

namespace {

/// What a program gets that uses buffers again before what it has started is complete. careful: it waits first.
struct Reuse {
  std::int64_t sum = 0;
  int letter = 0;
};

Reuse reuse(Landing landing, bool careful) {
  Reuse result;
  launch_delayed(2, slow(landing, 0.1), [&](Communicator& communicator) {
    const int me = communicator.rank(), other = 1 - me;
    // A gradient bucket that is filled again.
    std::vector<std::int64_t> bucket(100, me + 1), sum(100);
    auto pending = start_all_reduce(communicator, bucket, sum);
    if (careful) pending.wait();
    bucket.assign(100, 1000);
    if (!careful) pending.wait();
    // A message that is written again after it was sent, small enough to be copied by the fabric.
    int out = 7 + me, in = 0;
    auto sent = start_group(communicator, [&](Group& g) {
      g.send(std::span(&out, 1), other);
      g.receive(std::span(&in, 1), other);
    });
    if (careful) sent.wait();
    out = -1;
    if (!careful) sent.wait();
    if (me == 0) result = {sum[50], in};
  });
  return result;
}

/// What a rank finds in an output into which it has written before it waited.
std::int64_t overwrite(Landing landing) {
  std::int64_t found = 0;
  launch(2, [&](Communicator& world) {
    Communicator fast = world.split(0);
    Communicator line = delayed(std::move(world), slow(landing, 0.1));
    const std::vector<std::int64_t> data(100, 1);
    std::vector<std::int64_t> sum(100);
    auto pending = start_all_reduce(line, data, sum);
    for (int k = 0; k < 4; ++k) {
      barrier(fast);
      (void)pending.test();
    }
    sum.assign(100, 0);
    pending.wait();
    if (line.rank() == 0) found = sum[50];
  });
  return found;
}

}  // namespace

TEST_CASE("a buffer that is used again too early shows where data lands late") {
  for (const Landing landing : landings) {
    const Reuse right = reuse(landing, true);
    CHECK(right.sum == 3);
    CHECK(right.letter == 8);
  }
  const Reuse wrong = reuse(Landing::late, false);
  CHECK(wrong.sum == 2000);
  CHECK(wrong.letter == -1);
}

TEST_CASE("an output that is written too early shows where data lands at once") {
  CHECK(overwrite(Landing::late) == 2);
  CHECK(overwrite(Landing::at_once) == 0);
}

TEST_CASE("ranks complete the operations of two communicators in opposite orders, and wait for messages in between") {
  for (const Landing landing : landings) {
    launch_delayed(2, slow(landing, 2e-3, 2e-3), [](Communicator& world) {
      Communicator other = world.split(0);
      const int me = world.rank();
      for (int k = 0; k < 8; ++k) {
        std::vector<std::int64_t> a(5000, 1), b(3, 1), in(20'000), out(20'000, me);
        auto first = start_all_reduce(world, a);
        auto second = start_all_reduce(other, b);
        if (me == 0) {
          second.wait();
          receive(world, in, 1);
          CHECK(in[9] == 1);
          first.wait();
        } else {
          first.wait();
          second.wait();
          send(world, out, 0);
        }
        CHECK(a[4000] == 2);
        CHECK(b[2] == 2);
      }
    });
  }
}

TEST_CASE("a large message is received in a wait for something else, when it is due") {
  for (const Landing landing : landings) {
    launch_delayed(3, by(false), slow(landing, 0.01, 0.005), [](Communicator& world) {
      Communicator other = world.split(0);
      std::vector<int> in(50'000), more(50'000);
      if (world.rank() == 0) {
        auto first = start_group(world, [&](Group& g) { g.receive(in, 1); });
        auto second = start_group(world, [&](Group& g) { g.receive(more, 2); });
        barrier(other);  // the others come when their messages have been read
        first.wait();
        second.wait();
        CHECK(in[1] == 1);
        CHECK(more[1] == 2);
      } else {
        send(world, std::vector<int>(50'000, world.rank()), 0);
        barrier(other);
      }
    });
  }
}

TEST_CASE("errors are those of the fabric underneath") {
  for (const Landing landing : landings) {
    const Delays delays = slow(landing, 1e-3);
    CHECK_THROWS_WITH_AS(launch_delayed(2, delays,
                                        [](Communicator& communicator) {
                                          std::vector<int> data(communicator.rank() == 0 ? 3 : 4);
                                          start_all_reduce(communicator, data).wait();
                                        }),
                         doctest::Contains("the calls differ in the count"), Error);
    CHECK_THROWS_WITH_AS(launch_delayed(2, delays,
                                        [](Communicator& communicator) {
                                          communicator.set_deadline(0.05);
                                          communicator.set_name("line");
                                          if (communicator.rank() == 0) return barrier(communicator);
                                          const std::int64_t begin = monotonic_nanoseconds();
                                          while (seconds_since(begin) < 0.3) {}
                                          barrier(communicator);
                                        }),
                         doctest::Contains("within 0.05"), Error);
    CHECK_THROWS_WITH_AS(launch_delayed(2, delays,
                                        [](Communicator& communicator) {
                                          int item = 0;
                                          if (communicator.rank() == 0) receive(communicator, std::span(&item, 1), 1);
                                        }),
                         doctest::Contains("that it has left the group"), Error);
    CHECK_THROWS_WITH_AS(launch_delayed(2, delays,
                                        [](Communicator& communicator) {
                                          std::vector<int> data(communicator.rank() == 0 ? 3 : 4);
                                          if (communicator.rank() == 0) {
                                            send(communicator, data, 1);
                                          } else {
                                            receive(communicator, data, 0);
                                          }
                                          barrier(communicator);
                                        }),
                         doctest::Contains("16 bytes from rank 0"), Error);
    CHECK_THROWS_WITH_AS(launch_delayed(3, delays,
                                        [](Communicator& communicator) {
                                          std::vector<int> data(3);
                                          auto pending = start_all_reduce(communicator, data);
                                          if (communicator.rank() == 1) throw std::runtime_error("of the program");
                                          pending.wait();
                                          barrier(communicator);
                                        }),
                         "of the program", std::runtime_error);
  }
}

TEST_CASE("what has landed is complete in its time, though another rank has failed by then") {
  launch(2, [](Communicator& world) {
    Communicator fast = world.split(0);
    Communicator line = delayed(std::move(world), slow(Landing::at_once, 0.05));
    std::vector<int> data(10, 1);
    const std::int64_t begin = monotonic_nanoseconds();
    auto pending = start_all_reduce(line, data);
    for (int k = 0; k < 4; ++k) {
      barrier(fast);
      (void)pending.test();
    }
    if (line.rank() == 0) line.abort("for a test");
    barrier(fast);
    pending.wait();
    CHECK(seconds_since(begin) >= 0.05);
    CHECK(data[4] == 2);
    CHECK_THROWS_WITH_AS(barrier(line), doctest::Contains("for a test"), Error);
  });
}

TEST_CASE("what the fabric refuses is refused, and everything else goes on") {
  for (const Landing landing : landings) {
    launch_delayed(2, slow(landing, 0, 2e-3), [](Communicator& communicator) {
      std::vector<int> data(10, 1), other(10, 1);
      CollectiveOptions impossible;
      impossible.algorithm = Algorithm::bruck;  // for an all_reduce
      for (int k = 0; k < 8; ++k) {
        const auto refused = doctest::Contains("found bruck");
        CHECK_THROWS_WITH_AS(all_reduce(communicator, data, impossible), refused, Error);
        auto before = start_all_reduce(communicator, other);
        const auto started = [&] {
          auto pending = start_all_reduce(communicator, data, impossible);
          if (k % 2 == 0) {
            while (!pending.test()) detail::relax();
          }
          pending.wait();
        };
        CHECK_THROWS_WITH_AS(started(), refused, Error);
        all_reduce(communicator, other);
        before.wait();
      }
      CHECK(data[3] == 1);
      CHECK(other[3] == 1 << 16);
    });
  }
}

TEST_CASE("an operation that is given up ends the group, begun or not, also if its communicator goes first") {
  for (const bool begun : {false, true}) {
    std::atomic<bool> given_up{false}, gone{false};
    launch_delayed(2, slow(Landing::late, begun ? 0 : 100), [&](Communicator& world) {
      Communicator line = world.split(0), other = world.split(0);
      calls::Case one(Operation::all_reduce, 2, 0, 5000, world.rank()),
          two(Operation::all_gather, 2, 0, 5, world.rank());
      const auto run = [&](Communicator& communicator) { communicator.endpoint().start(one.call())->wait(); };
      if (world.rank() == 0) {
        auto running = line.endpoint().start(one.call());
        auto behind = line.endpoint().start(two.call());
        running.reset();
        given_up = true;
        CHECK_THROWS_WITH_AS(behind->wait(), doctest::Contains("given up before it was complete"), Error);
        const Owned<Running> orphan = other.endpoint().start(one.call());
        other = Communicator();
        gone = true;
        CHECK_THROWS_WITH_AS(orphan->wait(), doctest::Contains("before the operation was complete"), Error);
      } else {
        while (begun && !given_up) sched_yield();  // or it would be complete
        CHECK_THROWS_WITH_AS(run(line), doctest::Contains("given up before it was complete"), Error);
        while (begun && !gone) sched_yield();
        CHECK_THROWS_AS(run(other), Error);
      }
    });
  }
}
