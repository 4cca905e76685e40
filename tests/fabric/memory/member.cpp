// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/memory/member.hpp"

#include <doctest/doctest.h>
#include <sched.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/fabric/thread/launch.hpp"

using namespace meshwise;

TEST_CASE("a rank that leaves a group while unwinding, and lives on, has left it") {
  std::string text;
  launch(2, [&](Communicator& world) {
    try {
      Communicator pair = world.split(0);
      if (world.rank() == 0) throw std::runtime_error("caught below");
      barrier(pair);
    } catch (const std::runtime_error&) {
    } catch (const Error& error) {
      text = error.what();
    }
    barrier(world);
  });
  CHECK(text.find("expected rank 0 to take part in barrier") != std::string::npos);
}

TEST_CASE("a rank that runs far ahead does not confuse the others") {
  // In a ring broadcast the root depends only on its neighbour, so that it gets many calls ahead of the last rank.
  launch(6, [](Communicator& communicator) {
    for (int k = 0; k < 200; ++k) {
      int data = communicator.rank() == 0 ? k : -1;
      Call call;
      call.verb = "copy";
      call.shape = Shape{Operation::broadcast, 6, 0, true};
      call.element = ElementKind::i32;
      call.element_size = 4;
      call.count = 1;
      call.algorithm = Algorithm::ring;
      call.input = call.output = &data;
      call.regions.locate = [](const void*, const Shape&, Buffer, int, int slot) {
        return Region{0, slot == 0 ? std::size_t{1} : std::size_t{0}, 0, 1};
      };
      communicator.run(call);
      CHECK(data == k);
    }
  });
}

TEST_CASE("a deadline of 0 waits for ever") {
  std::atomic<bool> waited{false};
  LaunchOptions options;
  options.deadline = 0;
  launch(2, options, [&](Communicator& communicator) {
    if (communicator.rank() == 1) {
      const std::int64_t start = monotonic_nanoseconds();
      while (monotonic_nanoseconds() - start < 50'000'000) {}
      waited = true;
    }
    barrier(communicator);
    CHECK(waited.load());
  });
}

TEST_CASE("an error names axis, rank, call and the ranks that take part") {
  LaunchOptions options;
  options.name = "tp";
  std::vector<Report> reports(3);
  launch(3, options, [&](Communicator& communicator) {
    barrier(communicator);
    std::vector<int> data(communicator.rank() == 2 ? 5 : 4);
    try {
      all_reduce(communicator, data);
    } catch (const Error& error) {
      reports[static_cast<std::size_t>(communicator.rank())] = error.report();
    }
  });
  for (int rank = 0; rank < 3; ++rank) {
    const Report& report = reports[static_cast<std::size_t>(rank)];
    CHECK(report.code == Code::mismatch);
    CHECK(report.operation == "all_reduce");
    CHECK(report.axis == "tp");
    CHECK(report.rank == rank);
    CHECK(report.sequence == 2);
    CHECK(report.ranks.size() == 2);
    CHECK((report.ranks[0] == 2 || report.ranks[1] == 2));
  }
}

TEST_CASE("a time-out names all ranks that are late, and how far they are") {
  for (const bool messages : {false, true}) {
    std::vector<Report> reports(5);
    LaunchOptions options;
    options.messages = messages;
    launch(5, options, [&](Communicator& communicator) {
      const int rank = communicator.rank();
      try {
        if (rank == 4) communicator.set_deadline(0.05);
        if (rank == 1) {
          // Comes when the others have given up.
          const std::int64_t start = monotonic_nanoseconds();
          while (monotonic_nanoseconds() - start < 200'000'000) sched_yield();
        }
        barrier(communicator);
        if (rank != 3) barrier(communicator);
      } catch (const Error& error) {
        reports[static_cast<std::size_t>(rank)] = error.report();
      }
    });
    for (std::size_t rank = 0; rank < 5; ++rank) {
      const Report& report = reports[rank];
      CHECK(report.code == Code::timed_out);
      CHECK(report.ranks == std::vector<int>{1});
      CHECK(report.found == "rank 4 still waiting for rank 1, which has made no collective call here yet");
    }
  }
}

TEST_CASE("of many late ranks the first are named, and all are listed") {
  Report report;
  launch(14, [&](Communicator& communicator) {
    barrier(communicator);
    communicator.set_deadline(communicator.rank() == 0 ? 0.05 : 600);
    try {
      if (communicator.rank() == 0) {
        barrier(communicator);
      } else {
        // Any call that does not come to the second barrier: it ends when rank 0 has given up.
        int data = 0;
        communicator.endpoint().receive("test", 0, 1, &data, sizeof(data), -1);
      }
    } catch (const Error& error) {
      if (communicator.rank() == 0) report = error.report();
    }
  });
  CHECK(report.ranks.size() == 13);
  CHECK(report.found.find("rank 1, which has done 1 of the calls here; rank 2") != std::string::npos);
  CHECK(report.found.find("rank 8, which has done 1 of the calls here; and 5 more ranks") != std::string::npos);
}

TEST_CASE("after an error nobody touches the memory of others, however the error and the calls meet") {
  for (int k = 0; k < 120; ++k) {
    std::vector<std::vector<int>> data(3, std::vector<int>(k % 2 == 0 ? 40 : 5000));
    launch(3, [&](Communicator& communicator) {
      std::vector<int>& own = data[static_cast<std::size_t>(communicator.rank())];
      CollectiveOptions options;
      options.algorithm = Algorithm::direct;
      try {
        for (int call = 0;; ++call) {
          if (communicator.rank() == k % 3 && call == 3) {
            for (int spin = 0; spin < k % 40; ++spin) detail::relax();
            communicator.abort("enough");
          }
          all_reduce<Max>(communicator, own, options);
        }
      } catch (const Error& error) {
        CHECK(error.code() == Code::aborted);
      }
      // The caller's again: nobody may write it any more, nor read it while it is written.
      for (int& x : own) x = -1 - communicator.rank();
    });
    for (int rank = 0; rank < 3; ++rank) {
      const std::vector<int>& own = data[static_cast<std::size_t>(rank)];
      CHECK(own == std::vector<int>(own.size(), -1 - rank));
    }
  }
}
