// SPDX-License-Identifier: Apache-2.0
// Differences that no rank has heard of are found when the ranks leave their group.
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "meshwise/collective/barrier.hpp"
#include "meshwise/collective/broadcast.hpp"
#include "meshwise/collective/gather.hpp"
#include "meshwise/collective/reduce.hpp"
#include "meshwise/fabric/thread/launch.hpp"

using namespace meshwise;

namespace {

/// The text of the mismatch that a program ends with; empty if it ends well.
template <class F>
std::string end_of(int ranks, bool messages, const F& program) {
  LaunchOptions options;
  options.messages = messages;
  options.deadline = 60;
  options.name = "all";
  try {
    launch(ranks, options, program);
  } catch (const Error& error) {
    CHECK(error.code() == Code::mismatch);
    return error.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("two roots of the last call are found, and both are named") {
  for (const bool messages : {false, true}) {
    for (const int ranks : {2, 3, 5}) {
      for (const int odd : {1, ranks - 1}) {
        for (int earlier = 0; earlier < 20; earlier += 9) {
          const std::string text = end_of(ranks, messages, [&](Communicator& communicator) {
            std::vector<float> data(4);
            for (int k = 0; k < earlier; ++k) broadcast(communicator, data);
            broadcast(communicator, data, communicator.rank() == odd ? odd : 0);
          });
          CAPTURE(text);
          CHECK(has(text, "broadcast (rank "));
          // Whoever is behind when the others leave hears of it in an earlier call of its own.
          bool numbered = false;
          for (int call = 1; call <= earlier + 1; ++call) {
            numbered = numbered || has(text, "axis all, call " + std::to_string(call) + ")");
          }
          CHECK(numbered);
          CHECK(has(text, ": broadcast(4 x f32, root 0)"));
          CHECK(has(text, "rank " + std::to_string(odd) + ": broadcast(4 x f32, root " + std::to_string(odd) + ")"));
          CHECK(has(text, "the calls differ in the root"));
        }
      }
    }
  }
}

TEST_CASE("other rooted calls, and groups that are left before the program ends") {
  const std::string reduced = end_of(3, false, [](Communicator& communicator) {
    // Everybody gives and nobody takes.
    std::vector<int> in(2), out(2);
    reduce(communicator, in, out, (communicator.rank() + 1) % 3 == 2 ? 1 : 2);
  });
  CHECK(has(reduced, "root 2"));
  CHECK(has(reduced, "the root"));

  const std::string split = end_of(4, false, [](Communicator& world) {
    {
      Communicator pair = world.split(world.rank() / 2);
      pair.set_name("pair");
      int data = 0;
      broadcast(pair, std::span(&data, 1), world.rank() == 3 ? 1 : 0);
    }
    try {
      for (;;) barrier(world);  // until it is over
    } catch (const Error& error) {
      CHECK(error.code() == Code::aborted);
      CHECK(has(error.what(), "axis pair"));
      throw;
    }
  });
  CHECK(has(split, "axis pair, call 1"));
  CHECK(has(split, "broadcast(1 x i32, root 1)"));
  CHECK(has(split, "broadcast(1 x i32, root 0)"));
}

TEST_CASE("a call that one rank makes alone before it leaves is found") {
  for (const int alone : {0, 2}) {
    const std::string text = end_of(3, false, [&](Communicator& communicator) {
      int data = 0;
      barrier(communicator);
      if (communicator.rank() == alone) broadcast(communicator, std::span(&data, 1), alone);
    });
    CAPTURE(text);
    CHECK(has(text, "rank " + std::to_string(alone) + ": broadcast(1 x i32, root " + std::to_string(alone) + ")"));
    CHECK(has(text, "after which rank "));
  }
}

TEST_CASE("a difference of long ago is found too, though not where it was") {
  const std::string text = end_of(2, false, [](Communicator& communicator) {
    int data = 0;
    broadcast(communicator, std::span(&data, 1), communicator.rank());
    // Each of them is the root of its own calls, so that they never meet.
    for (int k = 0; k < 100; ++k) broadcast(communicator, std::span(&data, 1), communicator.rank());
  });
  CHECK(has(text, "the root"));
}

TEST_CASE("whoever leaves because of an exception, or after an error, is not compared") {
  for (int k = 0; k < 50; ++k) {
    try {
      launch(3, [](Communicator& communicator) {
        int data = 0;
        Communicator other = communicator.split(0);
        if (communicator.rank() == 1) {
          broadcast(other, std::span(&data, 1), 1);
          throw std::runtime_error("the cause");
        }
        try {
          barrier(communicator);
        } catch (const Error&) {}
      });
      CHECK(false);
    } catch (const std::runtime_error& error) {
      CHECK(std::string(error.what()) == "the cause");
    }
  }
}

TEST_CASE("programs that agree leave in any order") {
  for (int ranks = 1; ranks <= 5; ++ranks) {
    CHECK(end_of(ranks, false, [](Communicator& world) {
            std::vector<int> data(3), all(3 * static_cast<std::size_t>(world.size()));
            for (int k = 0; k < 30; ++k) {
              Communicator half = world.split(world.rank() % 2);
              broadcast(half, data, half.size() - 1);
              gather(world, data, all, k % world.size());
            }
          }).empty());
  }
}
