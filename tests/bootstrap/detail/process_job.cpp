// SPDX-License-Identifier: Apache-2.0
#include "meshwise/bootstrap/detail/process_job.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "meshwise/bootstrap/process_options.hpp"
#include "meshwise/core/deadline.hpp"
#include "meshwise/core/error.hpp"

using meshwise::Code;
using meshwise::Error;
using meshwise::ProcessOptions;
using meshwise::Report;
using meshwise::detail::Control;
using meshwise::detail::launch_processes;
using meshwise::detail::ProcessBody;
using meshwise::detail::RankRecord;
using meshwise::detail::record_failure;
using meshwise::detail::Segments;

namespace {

/// A lambda (rank, segments) as a body.
template <class Function>
ProcessBody body(Function& function) {
  return {[](void* context, int rank, Segments& segments) {
            for (const int one : {SIGINT, SIGTERM, SIGSEGV, SIGABRT}) signal(one, SIG_DFL);  // not the test's handlers
            return (*static_cast<Function*>(context))(rank, segments);
          },
          &function};
}

ProcessOptions hasty() {
  ProcessOptions options;
  options.grace = 0.2;
  options.kill_after = 0.2;
  return options;
}

/// What a launch throws; a code that it never has, and no text, if nothing.
template <class Function>
Report thrown(int ranks, const ProcessOptions& options, Function function) {
  try {
    launch_processes(ranks, options, body(function));
  } catch (const Error& error) {
    return error.report();
  }
  return {};
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// No child is left, alive or as a zombie.
bool childless() { return waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD; }

[[noreturn]] void stay() {
  while (true) pause();
}

}  // namespace

TEST_CASE("every rank runs once, in a process of its own, and shows in the control segment") {
  for (const int ranks : {1, 2, 5, 16}) {
    const pid_t parent = getpid();
    // What children write into the shared records is what the parent could check; here each checks the others.
    auto program = [&](int rank, Segments& segments) {
      Control& control = segments.header();
      if (getppid() != parent || segments.ranks() != ranks || control.ranks != ranks) return 1;
      control.record(rank).pid.store(getpid());
      for (int other = 0; other < ranks; ++other) {
        while (control.record(other).pid.load() == 0) usleep(100);
        if (other != rank && control.record(other).pid.load() == getpid()) return 2;
      }
      return 0;
    };
    launch_processes(ranks, {}, body(program));
    CHECK(childless());
  }
}

TEST_CASE("numbers that cannot be are refused before anything is started") {
  const auto never = [](int, Segments&) { return 1; };
  CHECK(has(thrown(0, {}, never).expected, "1 to 256"));
  CHECK(has(thrown(-1, {}, never).found, "-1"));
  CHECK(has(thrown(257, {}, never).found, "257"));
  ProcessOptions options;
  options.deadline = -1;
  CHECK(has(thrown(1, options, never).expected, "deadline"));
  options.deadline = 0;
  options.grace = -0.5;
  CHECK(has(thrown(1, options, never).expected, "grace"));
  options.grace = 0;
  options.kill_after = 0.0 / (getpid() > 0 ? 0.0 : 1.0);
  CHECK(has(thrown(1, options, never).expected, "SIGKILL"));
}

TEST_CASE("an exception of a rank is thrown here, with its fields") {
  const Report report = thrown(3, hasty(), [](int rank, Segments&) -> int {
    if (rank == 1) meshwise::fail("verb", "this", "that", "remedy", 1);
    return 0;
  });
  CHECK(report.code == Code::invalid_argument);
  CHECK(report.operation == "verb");
  CHECK(report.expected == "this");
  CHECK(report.found == "that");
  CHECK(report.remedy == "remedy");
  CHECK(report.rank == 1);
  const Report other = thrown(3, hasty(), [](int rank, Segments&) -> int {
    if (rank == 2) throw std::runtime_error("out of luck");
    return 0;
  });
  CHECK(other.code == Code::aborted);
  CHECK(other.rank == 2);
  CHECK(other.found == "out of luck");
  CHECK(has(thrown(1, hasty(), [](int, Segments&) -> int { throw 7; }).found, "no std::exception"));
  CHECK(childless());
}

TEST_CASE("a rank that is killed, crashes or exits by itself is named") {
  for (const int signal : {SIGKILL, SIGTERM, SIGINT, SIGUSR1}) {
    const Report report = thrown(4, hasty(), [&](int rank, Segments&) {
      if (rank == 2) raise(signal);
      return 0;
    });
    CHECK(report.code == Code::peer_left);
    CHECK(report.ranks == std::vector<int>{2});
    CHECK(has(report.found, "rank 2 (pid "));
    CHECK(has(report.found, "killed by signal " + std::to_string(signal)));
  }
  const Report code = thrown(4, hasty(), [](int rank, Segments&) { return rank == 3 ? 5 : 0; });
  CHECK(code.code == Code::peer_left);
  CHECK(has(code.found, "rank 3 (pid "));
  CHECK(has(code.found, "exited with code 5"));
  const Report gone = thrown(2, hasty(), [](int rank, Segments&) {
    if (rank == 0) _exit(9);
    return 0;
  });
  CHECK(has(gone.found, "rank 0"));
  CHECK(has(gone.found, "exited with code 9"));
  CHECK(childless());
}

TEST_CASE("the cause is thrown, not its echo") {
  // Rank 2 is killed; rank 0 notices it in a call and is the first to say that it fails.
  const Report killed = thrown(3, hasty(), [](int rank, Segments& segments) -> int {
    if (rank == 2) raise(SIGKILL);
    if (rank == 0) {
      while (segments.header().record(2).ended.load() == 0) usleep(100);
      Report report;
      report.code = Code::peer_left;
      report.operation = "all_reduce";
      report.sequence = 17;
      report.ranks = {2};
      report.rank = 0;
      throw Error(report);
    }
    return 0;
  });
  CHECK(killed.code == Code::peer_left);
  CHECK(has(killed.found, "rank 2 (pid "));
  CHECK(has(killed.found, "rank 0 noticed in all_reduce, call 17"));
  // Rank 1 fails, and what rank 0 says of that comes first.
  const Report echoed = thrown(2, hasty(), [](int rank, Segments& segments) -> int {
    Report report;
    if (rank == 0) {
      report.code = Code::aborted;
      report.ranks = {1};
      throw Error(report);
    }
    while (segments.header().failed.load() == 0) usleep(100);
    meshwise::fail("cause", "sense", "none", "none", rank);
  });
  CHECK(echoed.operation == "cause");
  // Several causes: the one that was first.
  const Report first = thrown(3, hasty(), [](int rank, Segments& segments) -> int {
    while (rank != 2 && segments.header().failed.load() == 0) usleep(100);
    meshwise::fail("rank " + std::to_string(rank), "", "", "", rank);
  });
  CHECK(first.rank == 2);
}

TEST_CASE("a report of a rank that returns success all the same") {
  const Report report = thrown(2, hasty(), [](int rank, Segments& segments) {
    Report mine;
    mine.operation = "quietly";
    mine.rank = rank;
    if (rank == 1) record_failure(segments.header(), rank, mine);
    return 0;
  });
  CHECK(report.operation == "quietly");
}

TEST_CASE("what ranks write into the control segment is not believed") {
  for (const std::uint32_t failed : {3u, 77777u, 0x80000000u, 0xffffffffu}) {
    for (const int code : {0, 1}) {
      const Report report = thrown(2, hasty(), [=](int rank, Segments& segments) {
        if (rank != 1) return 0;
        segments.header().failed.store(failed);
        RankRecord& record = segments.header().record(0);
        std::memset(static_cast<void*>(&record.report), 0xff, sizeof(record.report));
        record.reported.store(1);
        return code;
      });
      CHECK(report.code == (code == 0 ? Code::aborted : Code::peer_left));
      CHECK(has(report.found, "rank 1 (pid ") == (code != 0));
    }
  }
}

TEST_CASE("ranks that do not end when another has failed are ended") {
  const std::int64_t begin = meshwise::monotonic_nanoseconds();
  const Report report = thrown(4, hasty(), [](int rank, Segments&) -> int {
    if (rank == 0) meshwise::fail("early", "", "", "", 0);
    if (rank == 1) signal(SIGTERM, SIG_IGN);
    if (rank == 2) raise(SIGSTOP);
    stay();
  });
  CHECK(report.operation == "early");
  CHECK(meshwise::monotonic_nanoseconds() - begin < 10'000'000'000);
  CHECK(childless());
}

TEST_CASE("ranks have the time of grace to end by themselves") {
  ProcessOptions options;
  options.grace = 30;
  const Report report = thrown(2, options, [](int rank, Segments& segments) {
    if (rank == 0) return 3;
    while (segments.header().record(0).ended.load() == 0) usleep(100);
    usleep(300'000);
    segments.header().record(1).pid.store(4711);
    return 0;
  });
  CHECK(has(report.found, "exited with code 3"));
}

TEST_CASE("ranks that go on without the one that failed have more time, and as long as they run the others have") {
  ProcessOptions options = hasty();
  options.deadline = 60;
  const std::int64_t begin = meshwise::monotonic_nanoseconds();
  void* const memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  auto* const done = new (memory) std::atomic<int>(0);
  const Report report = thrown(4, options, [done](int rank, Segments& segments) {
    Control& control = segments.header();
    if (rank == 0) return 3;
    while (control.record(0).ended.load() == 0) usleep(100);
    if (rank == 3) stay();  // is ended when the others are done
    if (rank == 1) control.record(1).shrinks.fetch_add(1);
    usleep(rank == 1 ? 1'200'000 : 900'000);
    done->fetch_add(1);
    return 0;
  });
  CHECK(done->load() == 2);
  munmap(memory, 4096);
  CHECK(has(report.found, "rank 0 (pid "));
  CHECK(has(report.found, "exited with code 3"));
  CHECK(meshwise::monotonic_nanoseconds() - begin < 30'000'000'000);
  CHECK(childless());
}

TEST_CASE("the deadline ends all, and names those that were running") {
  ProcessOptions options;
  options.deadline = 0.3;
  const Report report = thrown(5, options, [](int rank, Segments&) -> int {
    signal(SIGTERM, SIG_IGN);
    if (rank % 2 == 1) return 0;
    stay();
  });
  CHECK(report.code == Code::timed_out);
  CHECK(report.ranks == std::vector<int>{0, 2, 4});
  CHECK(has(report.found, "ranks 0, 2 and 4"));
  CHECK(has(report.expected, "0.3 s"));
  CHECK(childless());
  options.deadline = 60;
  CHECK(thrown(2, options, [](int, Segments&) { return 0; }).found.empty());
}

TEST_CASE("children of this process that are no ranks are left alone") {
  const pid_t other = fork();
  if (other == 0) _exit(42);
  usleep(50'000);  // it has ended before the launch, most likely
  CHECK(thrown(3, hasty(), [](int, Segments&) { return 0; }).found.empty());
  int status = 0;
  CHECK(waitpid(other, &status, 0) == other);
  CHECK(WEXITSTATUS(status) == 42);
}

TEST_CASE("a SIGCHLD that this process ignores does not hide how ranks end") {
  signal(SIGCHLD, SIG_IGN);
  const Report report = thrown(2, hasty(), [](int rank, Segments&) { return rank == 1 ? 6 : 0; });
  CHECK(has(report.found, "exited with code 6"));
  const bool ignored_again = signal(SIGCHLD, SIG_DFL) == SIG_IGN;
  CHECK(ignored_again);
}

TEST_CASE("a handler that takes the status of every child") {
  struct Taker {
    static void take(int) {
      const int before = errno;
      while (waitpid(-1, nullptr, WNOHANG) > 0) {}
      errno = before;
    }
  };
  signal(SIGCHLD, Taker::take);
  const Report report = thrown(2, hasty(), [](int rank, Segments&) {
    signal(SIGCHLD, SIG_DFL);
    return rank == 1 ? 6 : 0;
  });
  signal(SIGCHLD, SIG_DFL);
  // Who was asked first, the handler or the launch, is chance; that a rank has failed is not.
  CHECK(report.code == Code::peer_left);
  CHECK(has(report.found, "rank "));
}

TEST_CASE("what is in the buffers of stdio is written once") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::fflush(stdout);
  const int before = dup(1);
  dup2(ends[1], 1);
  std::printf("once;");
  CHECK(thrown(3, hasty(), [](int rank, Segments&) {
          std::printf("%d;", rank);
          return 0;
        }).found.empty());
  std::fflush(stdout);
  dup2(before, 1);
  close(before);
  close(ends[1]);
  std::string text(4096, '\0');
  const ssize_t bytes = read(ends[0], text.data(), text.size());
  close(ends[0]);
  text.resize(bytes < 0 ? 0 : static_cast<std::size_t>(bytes));
  CHECK(text.size() == 11);
  CHECK(text.substr(0, 5) == "once;");
  for (const char* const part : {"0;", "1;", "2;"}) CHECK(has(text, part));
}

TEST_CASE("only rank 0 reads the input") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const int before = dup(0);
  dup2(ends[0], 0);
  REQUIRE(write(ends[1], "x", 1) == 1);
  close(ends[1]);
  CHECK(thrown(3, hasty(), [](int rank, Segments&) {
          char byte;
          return read(0, &byte, 1) == (rank == 0 ? 1 : 0) ? 0 : 1;
        }).found.empty());
  dup2(before, 0);
  close(before);
  close(ends[0]);
}

TEST_CASE("ranks die with the process that has started them") {
  int alive[2];
  REQUIRE(pipe(alive) == 0);
  const pid_t starter = fork();
  if (starter == 0) {
    close(alive[0]);
    auto program = [&](int, Segments&) -> int {
      if (write(alive[1], "x", 1) != 1) _exit(1);
      signal(SIGTERM, SIG_IGN);
      stay();
    };
    launch_processes(3, {}, body(program));
    _exit(0);
  }
  close(alive[1]);
  char byte;
  for (int k = 0; k < 3; ++k) REQUIRE(read(alive[0], &byte, 1) == 1);
  kill(starter, SIGKILL);
  waitpid(starter, nullptr, 0);
  CHECK(read(alive[0], &byte, 1) == 0);  // the end: nobody holds the other side
  close(alive[0]);
}
