// SPDX-License-Identifier: Apache-2.0
#include "../../../benchmarks/peers/worker.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../../benchmarks/peers/measure.hpp"
#include "../../../benchmarks/peers/report.hpp"

using namespace peers;

namespace {

/// A library whose calls take so long, on one rank of each job, and that may be wrong, hang or know nothing.
class Pretended {
 public:
  using Memory = OrdinaryMemory;
  static Memory memory() { return {}; }

  Pretended(int rank, double microseconds, char fault) : rank_(rank), microseconds_(microseconds), fault_(fault) {}

  bool begin(const Work& work) {
    work_ = work;
    return fault_ != 'n';
  }
  void run() {
    if (fault_ == 'h') {
      const std::timespec long_time{1000, 0};
      nanosleep(&long_time, nullptr);
    }
    if (fault_ == 't') throw std::runtime_error("it gives up");
    const std::int64_t end = harness::nanoseconds() + static_cast<std::int64_t>(microseconds_ * 1e3);
    for (std::size_t i = 0; i < work_.count; ++i) work_.out[i] = sum_of(2, i);
    if (fault_ == 'w' && rank_ == 1) work_.out[0] = 0;
    while (harness::nanoseconds() < end) {}
  }
  void end() {}
  void barrier() {}
  void progress() {}

 private:
  int rank_;
  double microseconds_;
  char fault_;
  Work work_;
};

int start(Contestants& contestants, const char* name, double microseconds, char fault = ' ') {
  return contestants.add("pretended", name, [=](Board& board, int seat) {
    for (int rank = 0; rank < board.ranks; ++rank) {
      if (fork() != 0) continue;
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      try {
        Pretended library(rank, microseconds, fault);
        Worker<Pretended>(board, seat, rank, library).serve();
      } catch (const std::exception& error) {
        say(board.seats[seat], error.what());
        _exit(1);
      }
      _exit(0);
    }
    int worst = 0;
    for (int status = 0; wait(&status) > 0 && worst == 0;) worst = status == 0 ? 0 : 1;
    return worst;
  });
}

Command check_of(Operation operation) { return {Task::check, operation, 64, 0, 0, 0}; }

}  // namespace

TEST_CASE("the better peer is found, and how much faster meshwise is") {
  Contestants contestants(2);
  REQUIRE(contestants.valid());
  const int own = start(contestants, "own", 300);
  const int slow = start(contestants, "slow", 2400);
  const int good = start(contestants, "good", 900);
  for (int seat = 0; seat < contestants.count(); ++seat) contestants.await(seat, 60);
  Options options;
  options.pairs = 7;
  options.busy = true;
  options.milliseconds = 2;
  Measurement measurement(contestants, options, {{own, false}}, {slow, good});
  const std::vector<Point> points = measurement.points(Operation::all_reduce, 64, true);
  REQUIRE(points.size() == 1);
  const Point& point = points[0];
  CHECK(point.peer == "good");
  CHECK((point.rewritten && !point.foreign && point.ranks == 2 && point.bytes == 64));
  REQUIRE(point.scouted.size() == 2);
  CHECK(point.scouted[0].first == "good");
  CHECK(point.us >= 299);
  CHECK(point.peer_us >= 899);
  CHECK(point.ratios.size() >= 7);
  CHECK(point.interval.low <= point.ratio);
  CHECK(point.ratio <= point.interval.high);
  CHECK(point.bar == 1.5);
}

TEST_CASE("a peer that is wrong, hangs, gives up or has no such operation is left out, and the reason is known") {
  Contestants contestants(2);
  REQUIRE(contestants.valid());
  const int wrong = start(contestants, "wrong", 1, 'w');
  const int hung = start(contestants, "hung", 1, 'h');
  const int thrown = start(contestants, "thrown", 1, 't');
  const int none = start(contestants, "none", 1, 'n');
  for (int seat = 0; seat < contestants.count(); ++seat) contestants.await(seat, 60);
  CHECK(contestants.perform(wrong, check_of(Operation::all_reduce), 60).wrong == 1);
  CHECK(contestants[wrong].takes_part());
  CHECK(contestants.perform(none, check_of(Operation::all_reduce), 60).cannot);
  contestants.perform(hung, check_of(Operation::all_reduce), 0.3);
  CHECK(!contestants[hung].takes_part());
  CHECK(contestants[hung].trouble.find("all_reduce of 64 B") != std::string::npos);
  contestants.perform(thrown, check_of(Operation::all_reduce), 60);
  CHECK(contestants[thrown].trouble.find("it gives up") != std::string::npos);
}

TEST_CASE("contestants that cannot be started are out, with the exit code of their launcher") {
  Contestants contestants(2);
  REQUIRE(contestants.valid());
  const int seat = contestants.add("x", "x", [](Board&, int) { return 127; });
  contestants.await(seat, 60);
  CHECK(contestants[seat].trouble.find("exit code 127") != std::string::npos);
}

TEST_CASE("the document names the host, how it was measured and every point") {
  Point point;
  point.operation = Operation::reduce;
  point.ranks = 2;
  point.bytes = 1024;
  point.peer = "a \"peer\"";
  point.peer_us = 3;
  point.us = 1;
  point.ratios = {3, 3, 3};
  point.ratio = 3;
  point.placement = "near";
  const std::string text = json_of(harness::Host{}, Options{}, {point}, {{"UCC", "absent"}});
  for (const char* part : {"\"format\": \"meshwise-peers 1\"", "\"operation\": \"reduce\"", "a \\\"peer\\\"",
                           "\"UCC\": \"absent\"", "\"ratio\": 3", "\"host\""}) {
    CHECK_MESSAGE(text.find(part) != std::string::npos, part);
  }
}

TEST_CASE("sizes and times are written with four digits") {
  CHECK(text_of_size(8) == "8");
  CHECK(text_of_size(32768) == "32K");
  CHECK(text_of_size(std::size_t{16} << 20) == "16M");
  CHECK(text_of_size(1025) == "1025");
  CHECK(text_of_us(1.2345) == "1.234");
  CHECK(text_of_us(123.45) == "123.5");
  CHECK(text_of_us(0) == "-");
}
