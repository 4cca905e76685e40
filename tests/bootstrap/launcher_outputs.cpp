// SPDX-License-Identifier: Apache-2.0
// What ranks write, and who reads it.
#include "meshwise/bootstrap/launcher.hpp"

#include <dirent.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "../support/sanitized.hpp"
#include "launched.hpp"
#include "meshwise/bootstrap/detail/process_job.hpp"
#include "meshwise/bootstrap/environment.hpp"
#include "meshwise/bootstrap/launcher_options.hpp"
#include "meshwise/core/error.hpp"

using launched::at;
using launched::count;
using launched::has;
using launched::hasty;
using launched::lines;
using launched::options;
using launched::Outcome;
using launched::patient;
using launched::put;
using launched::Running;
using launched::shell;
using launched::stay;
using meshwise::Error;
using meshwise::Launcher;
using meshwise::LauncherOptions;
using meshwise::detail::Segments;

TEST_CASE("lines of many ranks are complete, whole and in their order") {
  for (const bool label : {false, true}) {
    LauncherOptions with = options(8);
    with.label = label;
    Running job(with, launched::ranks([](int rank, Segments&) {
                  std::string text;
                  for (int k = 0; k < 10'000; ++k) {
                    text += "rank " + std::to_string(rank) + " line " + std::to_string(k) + " ";
                    text.append(static_cast<std::size_t>(k * 7 % 60), 'x');
                    text += '\n';
                    if (text.size() > 3001) {
                      put(1, text.substr(0, 3001));  // in the middle of a line, as blocks of stdio end
                      text.erase(0, 3001);
                    }
                  }
                  put(1, text);
                  return 0;
                }));
    const std::vector<std::string> all = lines(job.end().out);
    CHECK(all.size() == 80'000);
    int next[8] = {};
    int wrong = 0;
    for (const std::string& line : all) {
      int front = 0, rank = 0, number = 0, length = 0;
      const int read = label ? std::sscanf(line.c_str(), "[%d] rank %d line %d %n", &front, &rank, &number, &length)
                             : std::sscanf(line.c_str(), "rank %d line %d %n", &rank, &number, &length);
      const bool right =
          read == (label ? 3 : 2) && rank >= 0 && rank < 8 && (!label || front == rank) && next[rank] == number &&
          line.substr(static_cast<std::size_t>(length)) == std::string(static_cast<std::size_t>(number * 7 % 60), 'x');
      if (right) {
        ++next[rank];
      } else {
        ++wrong;
      }
    }
    CHECK(wrong == 0);
    for (const int one : next) CHECK(one == 10'000);
  }
}

TEST_CASE("bytes of one rank arrive as they are: zeros, no end of line, megabytes without one") {
  std::string all;
  for (int k = 0; k < 256; ++k) all += static_cast<char>(k);
  const auto writes = [](std::string text) {
    return launched::ranks([text](int rank, Segments&) {
      if (rank == 0) put(1, text);
      return 0;
    });
  };
  for (const int ranks : {1, 3}) {
    CHECK(Running(options(ranks), writes(all)).end().out == all);
    CHECK(Running(options(ranks), writes("no end")).end().out == "no end");
    CHECK(Running(options(ranks), writes("\n\n\r\n")).end().out == "\n\n\r\n");
    std::string large;
    while (large.size() < (8 << 20)) large += all.substr(11);
    CHECK(Running(options(ranks), writes(large)).end().out == large);
  }
}

TEST_CASE("a line that does not end is broken only where another rank writes") {
  Running job(options(2), launched::ranks([](int rank, Segments&) {
                if (rank == 0) {
                  for (int k = 0; k < 40; ++k) put(1, std::string(100'000, '0'));
                } else {
                  for (int k = 0; k < 40; ++k) {
                    put(1, "another line\n");
                    usleep(1000);
                  }
                }
                return 0;
              }));
  std::size_t zeros = 0;
  int others = 0;
  int wrong = 0;
  for (const std::string& line : lines(job.end().out)) {
    if (line == "another line") {
      ++others;
    } else if (line == std::string(line.size(), '0')) {
      zeros += line.size();
    } else {
      ++wrong;
    }
  }
  CHECK(wrong == 0);
  CHECK(others == 40);
  CHECK(zeros == 4'000'000);
}

TEST_CASE("stdout and stderr stay apart, and last lines without end stay lines") {
  LauncherOptions with = options(3);
  with.label = true;
  Running job(with, launched::ranks([](int rank, Segments&) {
                put(1, "out " + std::to_string(rank));
                put(2, "err " + std::to_string(rank));
                return 0;
              }));
  for (int rank = 0; rank < 3; ++rank) {
    const std::string number = std::to_string(rank);
    CHECK(count("\n" + job.end().out + "\n", "\n[" + number + "] out " + number + "\n") == 1);
    CHECK(count("\n" + job.end().err + "\n", "\n[" + number + "] err " + number + "\n") == 1);
  }
  // Both to one pipe: still no line inside another.
  Running one(with, [](Launcher& launcher) {
    dup2(1, 2);
    return launcher.run([](int rank, Segments&) {
      for (int k = 0; k < 500; ++k) {
        put(1, "this is a line on std");
        put(2, "this is a line on std");
        put(1, "out\n");
        put(2, "err\n");
      }
      return rank * 0;
    });
  });
  int right = 0;
  for (const std::string& line : lines(one.end().out)) {
    const std::string rest = line.substr(line.find(' ') + 1);
    right += rest == "this is a line on stdout" || rest == "this is a line on stderr" ? 1 : 0;
  }
  CHECK(right == 3000);
  CHECK(lines(one.end().out).size() == 3000);
}

TEST_CASE("outputs that somebody holds open after all ranks have ended do not hold the launcher") {
  Running job(options(2), shell("sleep 60 & echo started"));
  CHECK(job.end().code() == 0);
  CHECK(count(job.end().out, "started\n") == 2);
  CHECK(job.end().gone);  // what was left of the groups is killed
  CHECK(job.end().seconds < 30);
}

TEST_CASE("what outlives a rank may still write while others run") {
  Running job(options(2), shell("test $MESHWISE_RANK = 0 && { (sleep 0.3; echo late) & exit 0; }; sleep 0.8"));
  CHECK(job.end().code() == 0);
  CHECK(has(job.end().out, "late\n"));
}

TEST_CASE("an output that nobody reads any more is one for the ranks too") {
  Running job(hasty(3), shell("exec yes"));
  REQUIRE(job.await("y\n"));
  job.close_out();
  CHECK(job.end().code() == 128 + SIGPIPE);
  CHECK(job.end().gone);
}

TEST_CASE("output that cannot be written is an error") {
  Running job(hasty(2), [](Launcher& launcher) {
    FILE* const full = std::fopen("/dev/full", "w");
    dup2(fileno(full), 1);
    return launcher.run({"sh", "-c", "echo text; sleep 0.1"});
  });
  CHECK(job.end().code() != 0);
  CHECK(has(job.end().err, "cannot write to the standard output: No space left on device"));
}

TEST_CASE("a slow reader slows the ranks down, and memory does not grow") {
  Running job(options(1), [](Launcher& launcher) {
    return launcher.run([](int, Segments&) {
      const std::string block(1 << 16, 'x');
      for (int k = 0; k < 1024; ++k) put(1, block);  // 64 MiB
      return 0;
    });
  });
  usleep(300'000);
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/statm", static_cast<int>(job.pid()));
  long pages = 0, resident = 0;
  if (std::FILE* const file = std::fopen(path, "r")) {
    CHECK(std::fscanf(file, "%ld %ld", &pages, &resident) == 2);
    std::fclose(file);
  }
  // (a sanitizer keeps what has been freed)
  if (!building::sanitized) CHECK(resident * sysconf(_SC_PAGESIZE) < 48 << 20);
  CHECK(job.end().out.size() == 64 << 20);
}
