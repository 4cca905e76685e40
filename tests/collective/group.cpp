// SPDX-License-Identifier: Apache-2.0
#include "meshwise/collective/group.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/collective/barrier.hpp"
#include "meshwise/collective/send_receive.hpp"
#include "support.hpp"

using namespace test;

TEST_CASE("everybody sends to everybody, each in an order of its own") {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    on_both(ranks, [&](Communicator& communicator) {
      const int rank = communicator.rank();
      Draw draw(static_cast<std::uint64_t>(rank));
      for (const std::size_t size : {0U, 1U, 1000U, 20000U}) {  // the last one is read where it lies
        struct Act {
          bool sends;
          int peer;
        };
        std::vector<Act> acts;
        std::vector<std::vector<int>> out, in;
        for (int peer = 0; peer < ranks; ++peer) {
          acts.push_back({true, peer});
          acts.push_back({false, peer});
          out.emplace_back(size, rank * 100 + peer);
          in.emplace_back(size, -1);
        }
        for (std::size_t i = acts.size(); i > 1; --i) std::swap(acts[i - 1], acts[draw(i)]);
        const Traffic before = communicator.traffic();
        const auto fill = [&](Group& g) {
          for (const Act& act : acts) {
            const auto peer = static_cast<std::size_t>(act.peer);
            if (act.sends) {
              g.send(out[peer], act.peer);
            } else {
              g.receive(in[peer], act.peer);
            }
          }
        };
        if (size % 2 == 0) {
          group(communicator, fill);
        } else {
          Pending<void> pending = start_group(communicator, fill);
          while (rank % 2 == 0 && !pending.test()) {}
          pending.wait();
        }
        for (int peer = 0; peer < ranks; ++peer) {
          require(in[static_cast<std::size_t>(peer)] == std::vector<int>(size, peer * 100 + rank), "received");
        }
        const Traffic traffic = communicator.traffic() - before;
        const auto others = static_cast<std::uint64_t>(ranks - 1);
        require(traffic == Traffic{1, others, others * size * 4, others * size * 4}, "traffic");
      }
    });
  }
}

TEST_CASE("messages of one sender with one tag arrive in order, those with others when they are asked for") {
  launch(2, [](Communicator& communicator) {
    const int peer = 1 - communicator.rank();
    std::vector<int> out(6), in(6, -1);
    for (int i = 0; i < 6; ++i) out[static_cast<std::size_t>(i)] = i;
    Group messages(communicator);
    for (std::size_t i = 0; i < 6; ++i) messages.send(std::span(out).subspan(i, 1), peer, static_cast<int>(i % 2));
    for (const std::size_t i : {1U, 3U, 0U, 5U, 2U, 4U}) {
      messages.receive(std::span(in).subspan(i, 1), peer, static_cast<int>(i % 2));
    }
    for (int again = 0; again < 3; ++again) {
      for (int& x : out) x += 10;
      Pending<void> pending = messages.start();
      refuse([&] { messages.run(); }, "not in flight");
      refuse([&] { messages.clear(); }, "not in flight");
      while (!pending.test()) {}
      require(in == out, "in order");
    }
    messages.clear();
    messages.run();
  });
}

TEST_CASE("a group meets plain sends and receives") {
  launch(2, [](Communicator& communicator) {
    std::vector<int> data(3, 7), other(3);
    if (communicator.rank() == 0) {
      send(communicator, data, 1);
      receive(communicator, other, 1);
    } else {
      group(communicator, [&](auto& g) {
        g.receive(other, 0);
        g.send(data, 0);
      });
    }
    require(other == data, "met");
  });
}

namespace {

/// Bytes to be found in a message: who sends, and the how many-th message it is.
std::vector<std::uint8_t> letter(int from, int number, std::size_t bytes) {
  return std::vector<std::uint8_t>(bytes, static_cast<std::uint8_t>(from * 16 + number + 1));
}

/// Room for it, and whether it came.
struct Place {
  int from;
  int number;
  std::vector<std::uint8_t> data;

  Place(int sender, int nth, std::size_t bytes) : from(sender), number(nth), data(bytes) {}
  void check() const { require(data == letter(from, number, data.size()), "the message of another receive"); }
};

}  // namespace

TEST_CASE("of two groups in flight the one that was started first gets the first message") {
  // The last size of both is read where it lies.
  for (const std::size_t first : {4U, 0U, 70000U}) {
    for (const std::size_t second : {36U, 4U, 80000U}) {
      for (int way = 0; way < 4; ++way) {
        on_both(2, [&](Communicator& communicator) {
          const int peer = 1 - communicator.rank();
          const auto one = letter(communicator.rank(), 0, first);
          const auto two = letter(communicator.rank(), 1, second);
          Place a(peer, 0, first), b(peer, 1, second);
          const Traffic before = communicator.traffic();
          Pending<void> earlier = start_group(communicator, [&](Group& g) {
            g.receive(a.data, peer, 1);
            g.send(one, peer, 1);
          });
          Pending<void> later = start_group(communicator, [&](Group& g) {
            g.send(two, peer, 1);
            g.receive(b.data, peer, 1);
          });
          if (way == 0) {
            (void)later.test();
            earlier.wait();
            later.wait();
          } else if (way == 1) {
            // The one before is complete but for its own sends, which the peer receives.
            later.wait();
            a.check();
            earlier.wait();
          } else if (way == 2) {
            while (!later.test()) {}
            a.check();
            while (!earlier.test()) {}
            earlier.wait();
            later.wait();
          } else if (communicator.rank() == 0) {
            later = Pending<void>();  // waits
            earlier = Pending<void>();
          } else {
            earlier.wait();
            later.wait();
          }
          a.check();
          b.check();
          require(communicator.traffic() - before == Traffic{2, 2, first + second, first + second}, "traffic");
          require(communicator.endpoint().expectations().empty(), "nothing is expected any more");
        });
      }
    }
  }
}

TEST_CASE("plain receives and exchanges come after the groups in flight, and only after what these expect") {
  on_both(2, [](Communicator& communicator) {
    const int peer = 1 - communicator.rank();
    const int me = communicator.rank();
    for (const std::size_t size : {8U, 70000U}) {
      std::vector<std::vector<std::uint8_t>> out;
      std::vector<Place> in;
      for (int k = 0; k < 6; ++k) {
        out.push_back(letter(me, k, size + static_cast<std::size_t>(k)));
        in.emplace_back(peer, k, size + static_cast<std::size_t>(k));
      }
      Group receives(communicator);
      receives.receive(in[0].data, peer, 3);
      receives.receive(in[1].data, peer, 3);
      Group more(communicator);
      more.receive(in[3].data, peer, 3);
      more.receive(in[5].data, peer, 4);
      Group sends(communicator);
      for (std::size_t k = 0; k < 5; ++k) {
        if (k != 4) sends.send(out[k], peer, 3);
      }
      for (int again = 0; again < 2; ++again) {
        const Traffic before = communicator.traffic();
        for (Place& place : in) place.data.assign(place.data.size(), 0);
        Pending<void> first = receives.start();
        Pending<void> sending = sends.start();
        receive(communicator, in[2].data, peer, MessageOptions{3, -1});  // messages 0 and 1 are the group's
        in[0].check();
        in[1].check();
        in[2].check();
        Pending<void> second = more.start();
        exchange(communicator, out[4], peer, in[4].data, peer, MessageOptions{3, -1});  // and 3 the other's, but not 5
        in[3].check();
        in[4].check();
        require(first.test(), "all of it has been received");
        require(!communicator.endpoint().expectations().empty(), "5 is still to come");
        sending.wait();
        Pending<void> last = start_group(communicator, [&](Group& g) { g.send(out[5], peer, 4); });
        second.wait();
        last.wait();
        first.wait();
        for (const Place& place : in) place.check();
        std::size_t bytes = 0;
        for (const Place& place : in) bytes += place.data.size();
        require(communicator.traffic() - before == Traffic{6, 6, bytes, bytes}, "traffic");
      }
    }
  });
}

TEST_CASE("messages to oneself keep the order of their receives too") {
  on_both(1, [](Communicator& communicator) {
    for (const std::size_t size : {1U, 70000U}) {
      Place a(0, 0, size), b(0, 1, size + 1), c(0, 2, size + 2);
      Pending<void> first = start_group(communicator, [&](Group& g) { g.receive(a.data, 0); });
      Pending<void> second = start_group(communicator, [&](Group& g) { g.receive(b.data, 0); });
      require(!second.test() && !first.test(), "nothing has been sent");
      send(communicator, letter(0, 0, size), 0);
      require(!second.test(), "the message is the other one's");
      a.check();
      send(communicator, letter(0, 1, size + 1), 0);
      exchange(communicator, letter(0, 2, size + 2), 0, c.data, 0);
      b.check();
      c.check();
      require(second.test() && first.test(), "all have come");
      second.wait();
      first.wait();
    }
    require(communicator.traffic().messages == 0, "nothing has moved between ranks");
  });
}

TEST_CASE("many groups in flight, completed in an order that each rank draws") {
  constexpr int groups = 5;
  for (const int ranks : {2, 3, 5}) {
    on_both(ranks, [&](Communicator& communicator) {
      const int me = communicator.rank();
      Draw common(7), own(static_cast<std::uint64_t>(100 + me));
      for (int round = 0; round < 20; ++round) {
        // What goes from rank to rank in each group: all ranks draw the same.
        std::deque<std::vector<std::uint8_t>> out;
        std::deque<Place> in;
        std::vector<int> sent(static_cast<std::size_t>(ranks * ranks * 2), 0);
        std::vector<Group> all;
        for (int k = 0; k < groups; ++k) {
          Group& g = all.emplace_back(communicator);
          for (int from = 0; from < ranks; ++from) {
            for (int to = 0; to < ranks; ++to) {
              for (std::uint64_t count = common(3); count > 0; --count) {
                const auto tag = static_cast<int>(common(2));
                const std::size_t size = common(40) == 0 ? 70000 : common(50);
                const int number = sent[static_cast<std::size_t>((from * ranks + to) * 2 + tag)]++;
                if (from == me) g.send(out.emplace_back(letter(me, number * 2 + tag, size)), to, tag);
                if (to == me) g.receive(in.emplace_back(from, number * 2 + tag, size).data, from, tag);
              }
            }
          }
        }
        std::vector<Pending<void>> flying;
        for (Group& g : all) flying.push_back(g.start());
        // Turns of tests, so that no rank waits for what another one does not receive meanwhile.
        for (bool complete = false; !complete;) {
          for (int k = 0; k < groups; ++k) (void)flying[own(groups)].test();
          complete = std::all_of(flying.begin(), flying.end(), [](auto& pending) { return pending.test(); });
        }
        for (std::size_t k = flying.size(); k > 0; --k) flying[k - 1].wait();
        for (const Place& place : in) place.check();
      }
      barrier(communicator);
    });
  }
}

TEST_CASE("an error in a message that an earlier group expects reaches everybody who waits") {
  for (const bool messages : both) {
    for (int way = 0; way < 3; ++way) {
      Setup setup;
      setup.messages = messages;
      setup.deadline = 60;
      std::string text, again;
      const Outcome result = outcome(2, setup, [&](Communicator& communicator) {
        if (communicator.rank() == 0) {
          send(communicator, letter(0, 0, 5), 1);
          barrier(communicator);
          return;
        }
        std::vector<std::uint8_t> four(4), five(5);
        Pending<void> first = start_group(communicator, [&](Group& g) { g.receive(four, 0); });
        Pending<void> second;
        try {
          if (way == 0) {
            receive(communicator, five, 0);
          } else {
            second = start_group(communicator, [&](Group& g) { g.receive(five, 0); });
            while (way == 1 && !second.test()) {}
            second.wait();
          }
        } catch (const Error& error) {
          text = error.what();
        }
        require(!second.pending(), "the later one is over");
        try {
          first.wait();
        } catch (const Error& error) {
          again = error.what();
        }
        require(communicator.endpoint().expectations().empty(), "nothing is expected any more");
        barrier(communicator);
      });
      CHECK(contains(text, "group (rank 1"));
      CHECK(contains(text, "expected 4 bytes"));
      CHECK(contains(text, "found 5 bytes"));
      CHECK(contains(again, "expected 4 bytes"));
      CHECK(result.code[0] == Code::mismatch);
      CHECK(result.code[1] == Code::mismatch);
    }
  }
}

TEST_CASE("a plain receive waits for what an earlier group expects as long as it may wait itself") {
  const Outcome result = outcome(2, Setup{}, [](Communicator& communicator) {
    std::vector<int> data(1), other(1);
    if (communicator.rank() == 0) return barrier(communicator);
    Pending<void> pending = start_group(communicator, [&](Group& g) { g.receive(data, 0); });
    receive(communicator, other, 0, MessageOptions{0, 0.05});
  });
  CHECK(result.code[0] == Code::timed_out);
  CHECK(result.code[1] == Code::timed_out);
  CHECK(contains(result.text[1], "group with rank 0 within 0.05"));
}

TEST_CASE("bad groups are refused before anything is sent") {
  launch(2, [](Communicator& communicator) {
    std::vector<int> data(8);
    const std::span<int> all(data);
    refuse([&] { group(communicator, [&](Group& g) { g.send(data, 2); }); }, "send (rank");
    refuse([&] { group(communicator, [&](Group& g) { g.receive(data, 0, -1); }); }, "a tag >= 0");
    refuse([&] { group(communicator, [&](Group& g) { g.receive(std::span<int>(static_cast<int*>(nullptr), 2), 0); }); },
           "null");
    refuse(
        [&] {
          group(communicator, [&](Group& g) {
            g.receive(all.first(4), 0);
            g.receive(all.subspan(3, 4), 1);
          });
        },
        "an overlap of 4 bytes");
    refuse(
        [&] {
          group(communicator, [&](Group& g) {
            g.send(data, 0);
            g.receive(data, 1);
          });
        },
        "an overlap of 32 bytes");
    // Sends may share their data.
    std::vector<int> one(8), two(8);
    group(communicator, [&](Group& g) {
      g.send(data, 0);
      g.send(data, 1);
      g.receive(one, 0);
      g.receive(two, 1);
    });
    bool thrown = false;
    try {
      group(communicator, [&](Group& g) {
        g.send(data, 1 - communicator.rank());
        throw std::runtime_error("no");
      });
    } catch (const std::runtime_error&) {
      thrown = true;
    }
    require(thrown, "what the caller throws passes");
    barrier(communicator);
  });
}

TEST_CASE("a group given up while an exception passes ends the others' waits") {
  Setup setup;
  setup.deadline = 60;
  const Outcome result = outcome(2, setup, [](Communicator& communicator) {
    std::vector<int> data(100000), in(100000);
    const int peer = 1 - communicator.rank();
    try {
      Pending<void> pending = start_group(communicator, [&](Group& g) { g.receive(in, peer); });
      if (communicator.rank() == 0) throw std::runtime_error("stop");
      pending.wait();
    } catch (const std::runtime_error&) {}
    barrier(communicator);
  });
  CHECK(result.code[0] == Code::aborted);
  CHECK(result.code[1] == Code::aborted);
  CHECK(contains(result.text[1], "given up"));
}
