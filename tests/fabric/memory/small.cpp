// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/memory/small.hpp"

#include <doctest/doctest.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../calls.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/collective/broadcast.hpp"
#include "meshwise/fabric/thread/launch.hpp"

using namespace meshwise;

namespace {

/// Performs a case and says whether it is right.
bool performed(Communicator& communicator, calls::Case& one) {
  communicator.endpoint().run(one.call());
  return one.right();
}

std::size_t window(int ranks) {
  return detail::Windows::useful(ranks, detail::usable_cores() < ranks) / sizeof(std::int64_t);
}

}  // namespace

TEST_CASE("every operation, of sizes around the window's, with every root") {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    launch(ranks, [&](Communicator& communicator) {
      const std::size_t most = window(ranks);
      for (const Operation operation : calls::operations) {
        for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{64},
                                        most - 1, most, most + 1}) {
          for (int root = 0; root < (rooted(operation) ? ranks : 1); ++root) {
            calls::Case one(operation, ranks, root, count, communicator.rank());
            const bool right = performed(communicator, one);
            CHECK_MESSAGE(right, one.describe());
          }
        }
      }
    });
  }
}

TEST_CASE("a row of rooted calls longer than the ring of windows waits for its readers") {
  launch(4, [](Communicator& communicator) {
    for (int k = 0; k < 500; ++k) {
      const int root = k / 100 % communicator.size();
      if (communicator.rank() == (root + 1) % 4 && k % 50 == 0) {
        for (int pause = 0; pause < 20; ++pause) sched_yield();
      }
      std::vector<int> data(5, communicator.rank() == root ? k : -1);
      broadcast(communicator, data, root);
      CHECK(data[4] == k);
    }
  });
}

TEST_CASE("a rank that only gives does not wait") {
  launch(2, [](Communicator& communicator) {
    // Nobody would ever come out of this if the root waited for the other rank before the message.
    calls::Case one(Operation::reduce, 2, 0, 9, communicator.rank());
    if (communicator.rank() == 1) {
      CHECK(performed(communicator, one));
      communicator.endpoint().post_send("test", 0, 1, nullptr, 0, -1)->wait();
    } else {
      communicator.endpoint().receive("test", 1, 1, nullptr, 0, -1);
      CHECK(performed(communicator, one));
    }
  });
}

TEST_CASE("started on some ranks and blocking on others, small and large in turn") {
  launch(5, [](Communicator& communicator) {
    for (int k = 0; k < 60; ++k) {
      std::vector<std::unique_ptr<calls::Case>> cases;
      std::vector<Owned<Running>> running;
      for (const Operation operation : calls::operations) {
        const std::size_t count = (k + static_cast<int>(operation)) % 3 == 0 ? 3000 : 17;
        cases.push_back(
            std::make_unique<calls::Case>(operation, 5, rooted(operation) ? k % 5 : 0, count, communicator.rank()));
        if ((communicator.rank() + k) % 2 == 0) {
          running.push_back(communicator.endpoint().start(cases.back()->call()));
          running.back()->test();
        } else {
          communicator.endpoint().run(cases.back()->call());
        }
      }
      for (const auto& one : running) one->wait();
      for (const auto& one : cases) CHECK_MESSAGE(one->right(), one->describe());
    }
  });
}

TEST_CASE("strided places are packed on the way out and unpacked on the way in") {
  // Columns of a matrix with a column per rank: block b is column b.
  struct Columns {
    std::size_t rows, ranks;
    static Region locate(const void* context, const Shape& shape, Buffer buffer, int, int slot) {
      const auto& self = *static_cast<const Columns*>(context);
      if (buffer == Buffer::output && shape.operation == Operation::reduce_scatter) return {0, 1, 1, self.rows};
      return {static_cast<std::size_t>(slot), 1, self.ranks, self.rows};
    }
  };
  for (const int ranks : {2, 3, 8, 9}) {
    launch(ranks, [&](Communicator& communicator) {
      const Columns columns{4, static_cast<std::size_t>(ranks)};
      const std::size_t count = columns.rows * columns.ranks;
      for (const Operation operation : {Operation::all_reduce, Operation::reduce_scatter}) {
        std::vector<std::int64_t> in(count), out(operation == Operation::all_reduce ? count : columns.rows, -1);
        for (std::size_t i = 0; i < count; ++i) in[i] = static_cast<std::int64_t>(i) * (communicator.rank() + 1);
        Call call;
        call.verb = "test";
        call.shape = Shape{operation, ranks};
        call.element = ElementKind::i64;
        call.element_size = 8;
        call.count = count;
        call.reduction = ReductionKind::sum;
        call.kernel = reduce_kernel<std::int64_t, Sum>();
        call.input = in.data();
        call.output = out.data();
        call.regions = Regions{&Columns::locate, &columns};
        communicator.endpoint().run(call);
        const std::int64_t sum = ranks * (ranks + 1) / 2;
        bool right = true;
        for (std::size_t i = 0; i < out.size(); ++i) {
          const std::size_t at = operation == Operation::all_reduce
                                     ? i
                                     : i * columns.ranks + static_cast<std::size_t>(communicator.rank());
          right = right && out[i] == static_cast<std::int64_t>(at) * sum;
        }
        CHECK(right);
      }
    });
  }
}

TEST_CASE("calls that differ are found on both sides of the size limit") {
  struct Mistake {
    std::size_t count[2];
    const char* difference;
  };
  for (const Mistake& mistake : {Mistake{{3, 4}, "the count"}, Mistake{{3, 100000}, "the count"}}) {
    std::string text;
    try {
      launch(2, [&](Communicator& communicator) {
        std::vector<float> data(mistake.count[communicator.rank()], 1.0F);
        all_reduce(communicator, data);
      });
    } catch (const Error& error) {
      text = error.what();
      CHECK(error.code() == Code::mismatch);
    }
    CHECK_MESSAGE(text.find(mistake.difference) != std::string::npos, text);
    CHECK_MESSAGE(text.find("all_reduce(3 x f32") != std::string::npos, text);
  }
  std::string text;
  try {
    launch(3, [&](Communicator& communicator) {
      std::vector<float> data(3, 1.0F);
      if (communicator.rank() == 2) {
        barrier(communicator);
      } else {
        all_reduce(communicator, data);
      }
    });
  } catch (const Error& error) {
    text = error.what();
  }
  CHECK_MESSAGE(text.find("the operation") != std::string::npos, text);
}

TEST_CASE("waits for a window end at the deadline, and when the rank has left") {
  for (const bool stays : {true, false}) {
    try {
      launch(3, LaunchOptions{0.2}, [&](Communicator& communicator) {
        if (communicator.rank() == 1) {
          if (!stays) return;
          const timespec time{1, 0};
          nanosleep(&time, nullptr);
        }
        int data = 1;
        all_reduce(communicator, std::span(&data, 1));
      });
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.code() == (stays ? Code::timed_out : Code::peer_left));
      const auto& ranks = error.report().ranks;
      CHECK(std::find(ranks.begin(), ranks.end(), 1) != ranks.end());
    }
  }
}

TEST_CASE("a call in which nobody hears from everybody is compared at the next one") {
  for (const std::size_t next : {1U, 100000U}) {
    for (const int later : {0, 3}) {
      std::string text;
      try {
        launch(2, LaunchOptions{20}, [&](Communicator& communicator) {
          int data = 0;
          broadcast(communicator, std::span(&data, 1), communicator.rank());  // each of them is the root
          for (int k = 0; k < later; ++k) {
            calls::Case same(Operation::reduce, 2, 0, 4, communicator.rank());
            if (communicator.rank() == 1) communicator.endpoint().run(same.call());
          }
          std::vector<float> more(next, 1.0F);
          all_reduce(communicator, more);
        });
      } catch (const Error& error) {
        text = error.what();
        CHECK(error.code() == Code::mismatch);
      }
      CHECK_MESSAGE(text.find("broadcast(1 x i32, root 1)") != std::string::npos, text);
      CHECK_MESSAGE(text.find("before this one") != std::string::npos, text);
      CHECK_MESSAGE(text.find("the root") != std::string::npos, text);
    }
  }
}
