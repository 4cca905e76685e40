// SPDX-License-Identifier: Apache-2.0
// Groups of messages in flight while their thread waits for something else. Whatever is larger than a message that is
// copied keeps its sender waiting until it is received.
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/collective/broadcast.hpp"
#include "meshwise/collective/group.hpp"
#include "meshwise/collective/send_receive.hpp"
#include "support.hpp"

using namespace test;

namespace {

constexpr std::size_t copied = std::size_t{64} << 10;
constexpr std::size_t message_sizes[] = {0, 1, copied, copied + 1, std::size_t{1} << 20};

using Bytes = std::vector<std::uint8_t>;

/// What one rank sends to another, the how many-th time.
Bytes letter(int from, int to, std::size_t bytes, int number = 0) {
  return Bytes(bytes, static_cast<std::uint8_t>(1 + from * 40 + to * 8 + number));
}

/// Runs on both executors, with a deadline that a dead-lock reaches.
template <class F>
void on_both_soon(int ranks, F program) {
  for (const bool messages : both) {
    Setup setup;
    setup.messages = messages;
    setup.deadline = 20;
    launch(ranks, setup, program);
  }
}

}  // namespace

TEST_CASE("a barrier goes on with the receives of a group") {
  for (int ranks = 2; ranks <= 5; ++ranks) {
    on_both_soon(ranks, [ranks](Communicator& communicator) {
      const int me = communicator.rank();
      for (const std::size_t size : message_sizes) {
        std::deque<Bytes> in;
        if (me == 0) {
          Pending<void> pending = start_group(communicator, [&](Group& g) {
            for (int from = 1; from < ranks; ++from) g.receive(in.emplace_back(size), from, 2);
          });
          barrier(communicator);
          pending.wait();
          for (int from = 1; from < ranks; ++from) {
            require(in[static_cast<std::size_t>(from - 1)] == letter(from, 0, size), "received in a barrier");
          }
        } else {
          send(communicator, letter(me, 0, size), 0, MessageOptions{2, -1});
          barrier(communicator);
        }
        require(communicator.endpoint().expectations().empty(), "nothing is expected any more");
      }
    });
  }
}

TEST_CASE("everybody sends to everybody while it receives from everybody") {
  for (int ranks = 2; ranks <= 5; ++ranks) {
    on_both_soon(ranks, [ranks](Communicator& communicator) {
      const int me = communicator.rank();
      for (const std::size_t size : message_sizes) {
        const Traffic before = communicator.traffic();
        std::deque<Bytes> in;
        std::vector<Pending<void>> pending;  // a group of its own for every sender
        for (int from = 0; from < ranks; ++from) {
          if (from == me) continue;
          pending.push_back(start_group(communicator, [&](Group& g) {
            for (int k = 0; k < 2; ++k) g.receive(in.emplace_back(size), from);
          }));
        }
        for (int k = 0; k < 2; ++k) {
          for (int step = 1; step < ranks; ++step) {
            const int to = (me + step) % ranks;
            send(communicator, letter(me, to, size, k), to);  // waits until the other one has received
          }
        }
        for (std::size_t i = pending.size(); i > 0; --i) pending[i - 1].wait();
        std::size_t at = 0;
        for (int from = 0; from < ranks; ++from) {
          if (from == me) continue;
          for (int k = 0; k < 2; ++k) require(in[at++] == letter(from, me, size, k), "in the order of the receives");
        }
        const auto others = static_cast<std::uint64_t>(ranks - 1);
        const std::uint64_t bytes = 2 * others * size;
        require(communicator.traffic() - before == Traffic{3 * others, 2 * others, bytes, bytes}, "traffic");
      }
    });
  }
}

TEST_CASE("a group's wait receives in whatever order messages come") {
  // Rank 0 is sent to by rank 1 only after rank 1 has heard from rank 2, which rank 0 must hear first.
  on_both_soon(3, [](Communicator& communicator) {
    for (const std::size_t size : message_sizes) {
      Bytes one(size), two(size);
      if (communicator.rank() == 0) {
        group(communicator, [&](Group& g) {
          g.receive(one, 1);
          g.receive(two, 2);
        });
        require(one == letter(1, 0, size) && two == letter(2, 0, size), "both");
      } else if (communicator.rank() == 1) {
        receive(communicator, two, 2);
        send(communicator, letter(1, 0, size), 0);
      } else {
        send(communicator, letter(2, 0, size), 0);
        send(communicator, letter(2, 1, size), 1);
      }
    }
  });
}

TEST_CASE("waits on other communicators go on with a group, and a group's wait with them") {
  for (int ranks = 2; ranks <= 5; ++ranks) {
    on_both_soon(ranks, [ranks](Communicator& world) {
      Communicator inner = world.split(world.rank() < ranks - 1 ? 0 : 1);  // all but the last
      Communicator innermost = inner.split(0, -inner.rank());
      Communicator same = world.split(0, -world.rank());
      for (const std::size_t size : message_sizes) {
        std::vector<float> sum(5000, 1.0F);
        Bytes in(size), more(size);
        const int me = innermost.rank(), count = innermost.size();
        const int next = (me + 1) % count, before = (me + count - 1) % count;
        // Messages on the innermost, waits outside.
        Pending<void> pending = start_group(innermost, [&](Group& g) {
          g.receive(in, before, 1);
          g.receive(more, before, 2);
        });
        auto summed = start_all_reduce(world, sum);
        if (me % 2 == 0) send(innermost, letter(me, next, size), next, MessageOptions{1, -1});
        barrier(inner);
        if (me % 2 == 1) send(innermost, letter(me, next, size), next, MessageOptions{1, -1});
        barrier(world);  // completes the sum too
        const Bytes last = letter(me, next, size, 1);
        Pending<void> leaving = start_group(innermost, [&](Group& g) { g.send(last, next, 2); });
        if (me % 2 == 0) leaving.wait();
        barrier(same);
        leaving = Pending<void>();  // waits
        pending.wait();
        summed.wait();
        require(in == letter(before, me, size), "the first message");
        require(more == letter(before, me, size, 1), "the second message");
        require(sum == std::vector<float>(5000, static_cast<float>(ranks)), "the sum");
        // A collective that others wait for, while this rank waits for its messages.
        Bytes shared(70000, static_cast<std::uint8_t>(world.rank()));
        auto started = start_broadcast(same, shared, 0);
        if (world.rank() == 0) {
          std::vector<std::array<float, 1>> from_all(static_cast<std::size_t>(ranks));
          group(world, [&](Group& g) {
            for (int from = 1; from < ranks; ++from) g.receive(from_all[static_cast<std::size_t>(from)], from, from);
          });
          started.wait();
        } else {
          started.wait();
          send(world, std::vector<float>(1), 0, MessageOptions{world.rank(), -1});
        }
        require(shared.front() == static_cast<std::uint8_t>(ranks - 1), "the broadcast");
      }
    });
  }
}

TEST_CASE("loops of tests of something else go on with a group") {
  on_both_soon(3, [](Communicator& communicator) {
    Communicator other = communicator.split(0);
    const int me = communicator.rank();
    for (const std::size_t size : message_sizes) {
      Bytes in(size);
      if (me == 0) {
        Pending<void> pending = start_group(communicator, [&](Group& g) { g.receive(in, 1); });
        Pending<void> met = start_barrier(other);
        while (!met.test()) {}
        // Of two groups that expect the same the first has its message, though the other one is tested.
        pending.wait();
        Bytes first(size), second(size + 1);
        Pending<void> a = start_group(communicator, [&](Group& g) { g.receive(first, 2); });
        Pending<void> b = start_group(communicator, [&](Group& g) { g.receive(second, 2); });
        while (!b.test()) {}
        require(first == letter(2, 0, size) && second == letter(2, 0, size + 1, 1), "in order");
        require(a.test(), "all of it has been received");
        a.wait();
        b.wait();
        require(in == letter(1, 0, size), "received by tests of a barrier");
      } else {
        if (me == 1) send(communicator, letter(1, 0, size), 0);
        barrier(other);
        if (me == 2) {
          send(communicator, letter(2, 0, size), 0);
          send(communicator, letter(2, 0, size + 1, 1), 0);
        }
      }
    }
  });
}

TEST_CASE("a plain receive waits while a group receives others of the same sender") {
  on_both_soon(2, [](Communicator& communicator) {
    for (const std::size_t size : message_sizes) {
      if (communicator.rank() == 0) {
        Bytes one(size), two(size), three(size + 1), four(size);
        Pending<void> pending = start_group(communicator, [&](Group& g) {
          g.receive(one, 1, 1);
          g.receive(two, 1, 2);
          g.receive(four, 1, 2);
        });
        receive(communicator, three, 1, MessageOptions{1, -1});  // after the first of the group's
        pending.wait();
        require(one == letter(1, 0, size, 0) && two == letter(1, 0, size, 1), "the group's");
        require(three == letter(1, 0, size + 1, 2) && four == letter(1, 0, size, 3), "the plain one's");
      } else {
        send(communicator, letter(1, 0, size, 1), 0, MessageOptions{2, -1});
        send(communicator, letter(1, 0, size, 0), 0, MessageOptions{1, -1});
        send(communicator, letter(1, 0, size, 3), 0, MessageOptions{2, -1});
        send(communicator, letter(1, 0, size + 1, 2), 0, MessageOptions{1, -1});
      }
    }
  });
}

TEST_CASE("a wrong message that comes in a barrier ends the barrier, and the group reports it too") {
  for (const bool messages : both) {
    for (const bool elsewhere : both) {
      Setup setup;
      setup.messages = messages;
      setup.deadline = 60;
      std::string waited;
      const Outcome result = outcome(2, setup, [&](Communicator& communicator) {
        Communicator other = communicator.split(0);
        if (communicator.rank() == 1) {
          send(communicator, letter(1, 0, copied + 2), 0);
          barrier(communicator);
          return;
        }
        Bytes in(copied + 1);
        Pending<void> pending = start_group(communicator, [&](Group& g) { g.receive(in, 1); });
        try {
          barrier(elsewhere ? other : communicator, CollectiveOptions{Algorithm::automatic, elsewhere ? 0.3 : 60});
        } catch (const Error& error) {
          waited = error.what();
        }
        pending.wait();
      });
      CAPTURE(waited);
      CAPTURE(result.text[0]);
      CAPTURE(result.text[1]);
      // The other communicator is fine, but the sender does not come to its barrier any more.
      CHECK(contains(waited, elsewhere ? "barrier" : "found 65538 bytes"));
      CHECK(result.code[0] == Code::mismatch);
      CHECK(result.code[1] == Code::mismatch);
      CHECK(contains(result.text[0], "expected 65537 bytes from rank 1"));
      CHECK(contains(result.text[1], "found 65538 bytes"));
    }
  }
}

TEST_CASE("a sender that has left is found by the group's own wait, not before") {
  Setup setup;
  setup.deadline = 60;
  const Outcome result = outcome(3, setup, [](Communicator& communicator) {
    Communicator pair = communicator.split(communicator.rank() < 2 ? 0 : 1);
    Communicator others = communicator.split(communicator.rank() == 1 ? 1 : 0);
    if (communicator.rank() == 1) return;
    if (communicator.rank() == 2) return barrier(others);
    Bytes in(8);
    Pending<void> pending = start_group(pair, [&](Group& g) { g.receive(in, 1); });
    barrier(others);
    pending.wait();
  });
  CHECK(result.code[0] == Code::peer_left);
  CHECK(result.text[2].empty());
}
