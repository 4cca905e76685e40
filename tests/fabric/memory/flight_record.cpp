// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/memory/flight_record.hpp"

#include <doctest/doctest.h>
#include <sched.h>

#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

#include "../../support/standard_error.hpp"
#include "../calls.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/collective/send_receive.hpp"
#include "meshwise/fabric/memory/reporter.hpp"
#include "meshwise/fabric/thread/job.hpp"
#include "meshwise/fabric/thread/launch.hpp"

using namespace meshwise;
using namespace meshwise::detail;
using captured::written;

namespace {

/// Slots of ranks that are nobody's, as they would write them.
class Ranks {
 public:
  explicit Ranks(int size) : group_(MemoryGroup::make(std::make_shared<ThreadJob>(size), Topology::flat(size), false)) {
    group_->state().members = 0;
  }

  void enter(int rank, std::uint64_t sequence, std::uint64_t step, const char* verb = "all_reduce") {
    Call call;
    call.verb = verb;
    call.shape = Shape{Operation::all_reduce, group_->size(), 0, false};
    call.element = ElementKind::f32;
    call.element_size = 4;
    call.count = 1000;
    call.reduction = ReductionKind::sum;
    slot(rank).write(sequence, Entry::of(call, nullptr));
    if (step > 1) slot(rank).progress = progress_at(sequence, step);
  }
  void await(int rank, int peer, std::uint64_t sequence, std::uint64_t step, std::int64_t age = 0) {
    slot(rank).awaits = Awaited{peer, sequence, step}.word();
    slot(rank).looked = monotonic_nanoseconds() - age;
  }
  MemorySlot& slot(int rank) { return group_->slot(rank); }
  void finish_small(int rank, std::uint64_t sequence) { group_->windows().finished(rank) = sequence; }
  FlightRecord record() { return FlightRecord(*group_); }

 private:
  std::shared_ptr<MemoryGroup> group_;
};

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

LaunchOptions logging(LogLevel level, double deadline) {
  LaunchOptions options;
  options.deadline = deadline;
  options.name = "line";
  options.settings = Settings{};
  options.settings->log = level;
  return options;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("what is awaited fits into a word") {
  for (const int rank : {0, 1, 4095}) {
    for (const std::uint64_t sequence : {std::uint64_t{1}, std::uint64_t{1} << 23, (std::uint64_t{1} << 30) + 7}) {
      for (const std::uint64_t step : {Awaited::anything, std::uint64_t{5}, Awaited::message}) {
        const Awaited back = Awaited::of(Awaited{rank, sequence, step}.word());
        CHECK(back.rank == rank);
        CHECK(back.step == step);
        CHECK(back.is_of(sequence));
        CHECK(!back.is_of(sequence + 1));
      }
    }
  }
  CHECK(Awaited::of(0).rank == -1);
}

TEST_CASE("a chain of waits ends at the rank that holds it up") {
  Ranks ranks(5);
  for (int rank = 0; rank < 5; ++rank) ranks.enter(rank, 1, last_step, "broadcast");
  for (const int rank : {1, 2, 3}) ranks.enter(rank, 2, rank == 1 ? 3 : 1);
  ranks.await(1, 0, 2, 1);
  ranks.await(2, 1, 2, 5);
  ranks.await(3, 1, 2, 5);
  ranks.enter(4, 2, last_step);
  ranks.await(4, 1, 1, 2);  // of the call before, long since over
  const FlightRecord record = ranks.record();
  CHECK(record.waits_for(0) == -1);
  CHECK(record.waits_for(1) == 0);
  CHECK(record.waits_for(3) == 1);
  CHECK(record.waits_for(4) == -1);
  CHECK(record.holds_up(0));
  CHECK(!record.holds_up(1));
  CHECK(!record.holds_up(4));
  CHECK(record.text("line") ==
        "flight record of line, 5 ranks:\n"
        "  rank 0 holds up others: has done its part of call 1 broadcast(1000 x f32, sum)\n"
        "  ranks 2, 3 wait for rank 1, which waits for rank 0\n"
        "rank 0: has done its part of call 1 broadcast(1000 x f32, sum)\n"
        "rank 1: in call 2 all_reduce(1000 x f32, sum), after 2 steps, waits for rank 0; before: call 1 "
        "broadcast(1000 x f32, sum)\n"
        "rank 2: in call 2 all_reduce(1000 x f32, sum), entered, waits for rank 1; before: call 1 "
        "broadcast(1000 x f32, sum)\n"
        "rank 3: in call 2 all_reduce(1000 x f32, sum), entered, waits for rank 1; before: call 1 "
        "broadcast(1000 x f32, sum)\n"
        "rank 4: has done its part of call 2 all_reduce(1000 x f32, sum); before: call 1 "
        "broadcast(1000 x f32, sum)\n");
}

TEST_CASE("a wait that can be over is none") {
  Ranks ranks(3);
  for (int rank = 0; rank < 3; ++rank) ranks.enter(rank, 7, 4);
  ranks.await(0, 1, 7, 4);  // rank 1 is there
  ranks.await(1, 2, 7, 5);
  CHECK(ranks.record().waits_for(0) == -1);
  CHECK(ranks.record().waits_for(1) == 2);
  CHECK(ranks.record().holds_up(2));
  ranks.enter(2, 8, 1);
  CHECK(ranks.record().waits_for(1) == -1);

  // A message is waited for only as long as the rank looks around.
  ranks.await(0, 1, 7, Awaited::message);
  CHECK(ranks.record().waits_for(0) == 1);
  ranks.await(0, 1, 7, Awaited::message, 3'000'000'000);
  CHECK(ranks.record().waits_for(0) == -1);
  // A small call that is complete waits for nobody.
  ranks.enter(1, 7, last_step);
  ranks.await(1, 0, 7, Awaited::anything);
  CHECK(ranks.record().waits_for(1) == 0);
  ranks.finish_small(1, 7);
  CHECK(ranks.record().waits_for(1) == -1);
  CHECK(says(ranks.record().text(""), "rank 1: between calls, after call 7"));
}

TEST_CASE("circles, ranks that have gone, and ranks that are silent") {
  Ranks ranks(4);
  for (int rank = 0; rank < 4; ++rank) ranks.enter(rank, 3, 2);
  ranks.await(0, 1, 3, 3);
  ranks.await(1, 0, 3, 3, 4'200'000'000);
  ranks.await(2, 3, 3, 4);
  ranks.slot(3).state = MemorySlot::State::gone;
  const std::string text = ranks.record().text("");
  CHECK_MESSAGE(says(text, "  rank 0 waits for rank 1, which waits for rank 0: they wait for each other\n"), text);
  CHECK_MESSAGE(says(text, "  rank 2 waits for rank 3\n"), text);
  CHECK_MESSAGE(says(text, "  rank 3 holds up others: has left the group; in call 3"), text);
  CHECK_MESSAGE(says(text,
                     "rank 1: in call 3 all_reduce(1000 x f32, sum), after 1 step, waits for rank 0, no sign of "
                     "life for 4."),
                text);
}

TEST_CASE("the text on a large group is short") {
  Ranks ranks(1000);
  for (int rank = 0; rank < 1000; ++rank) {
    ranks.enter(rank, 1, last_step);
    if (rank % 10 == 0) continue;
    ranks.enter(rank, 2, 1);
    ranks.await(rank, rank - rank % 10, 2, 1);
  }
  const std::string text = ranks.record().text("");
  CHECK(count(text, "\n") < 60);
  CHECK_MESSAGE(says(text, "  and 84 more\n"), text);
  CHECK_MESSAGE(says(text, "and 984 ranks more, of which 900 wait for others\n"), text);
  CHECK_MESSAGE(says(text, "  ranks 1, 2, 3, 4, 5, 6, 7, 8 and 1 more wait for rank 0\n"), text);
}

TEST_CASE("the first rank that waits in vain writes the record, once, unless the log is off") {
  for (const LogLevel level : {LogLevel::error, LogLevel::warning, LogLevel::off}) {
    std::atomic<int> errors{0};
    std::atomic<bool> told{false};
    std::string later;
    const std::string text = written([&] {
      launch(4, logging(level, 0.3), [&](Communicator& world) {
        barrier(world);
        if (world.rank() == 2) {
          while (errors.load() < 3) sched_yield();
          later = world.flight_record();
          told = true;
          return;
        }
        std::vector<float> data(10000, 1.0F);
        try {
          all_reduce(world, data);
        } catch (const Error& error) {
          CHECK(error.code() == Code::timed_out);
          ++errors;
        }
        while (!told.load()) sched_yield();
      });
    });
    CHECK_MESSAGE(count(text, "flight record of line, 4 ranks:\n") == (level == LogLevel::off ? 0U : 1U), text);
    CHECK_MESSAGE(count(text, "meshwise[rank ") == (level == LogLevel::off ? 0U : 1U), text);
    // Whoever is asked afterwards says the same.
    for (const std::string& one : {level == LogLevel::off ? later : text, later}) {
      CHECK_MESSAGE(says(one, "  rank 2 holds up others: between calls, after call 1 barrier()\n"), one);
      CHECK_MESSAGE(says(one, "for rank 2\n"), one);
      CHECK_MESSAGE(says(one, "rank 0: in call 2 all_reduce(10000 x f32, sum, in place), entered"), one);
    }
    CHECK_MESSAGE(says(later, "given up after an error, waited for rank 2"), later);
  }
}

TEST_CASE("ranks that wait for each other's messages are a circle") {
  const std::string text = written([] {
    launch(2, logging(LogLevel::warning, 0.3), [](Communicator& world) {
      int data = 0;
      CHECK_THROWS_AS(receive(world, std::span(&data, 1), 1 - world.rank()), Error);
    });
  });
  CHECK_MESSAGE(says(text, "  rank 0 waits for rank 1, which waits for rank 0: they wait for each other\n"), text);
  CHECK_MESSAGE(says(text, "rank 0: no collective call so far, waits for a message of or to rank 1\n"), text);
}

TEST_CASE("more is said of more levels") {
  const auto run = [](LogLevel level) {
    return written([&] {
      launch(2, logging(level, 20), [](Communicator& world) {
        Communicator part = world.split(0);
        part.abort("enough");
        CHECK_THROWS_AS(barrier(part), Error);
      });
    });
  };
  CHECK(run(LogLevel::warning).empty());
  const std::string info = run(LogLevel::info);
  CHECK_MESSAGE(count(info, "\n") == 1, info);
  CHECK_MESSAGE(info.rfind("meshwise info: 2 threads as ranks, by memory, on ", 0) == 0, info);
  const std::string debug = run(LogLevel::debug);
  CHECK_MESSAGE(says(debug, "meshwise[rank 1] debug: has joined group line of 2 as rank 1, generation 0\n"), debug);
  CHECK_MESSAGE(says(debug, "called abort: enough\n"), debug);
  CHECK_MESSAGE(count(debug, "debug: has left group line") == 4, debug);
}
