// SPDX-License-Identifier: Apache-2.0
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

TEST_CASE("options that cannot work are refused") {
  CHECK_THROWS_AS(Launcher(options(0)), Error);
  CHECK_THROWS_AS(Launcher(options(257)), Error);
  LauncherOptions bad = options(1);
  bad.grace = -1;
  CHECK_THROWS_AS(Launcher{bad}, Error);
  bad = options(1);
  bad.timeout = -0.1;
  CHECK_THROWS_AS(Launcher{bad}, Error);
  for (const char* const setting : {"", "=", "=x", "NAME", "MESHWISE_RANK=3", "MESHWISE_JOB="}) {
    bad = options(1);
    bad.environment = {setting};
    CHECK_THROWS_AS(Launcher{bad}, Error);
  }
  CHECK_THROWS_AS(Launcher(options(1)).run(std::vector<std::string>{}), Error);
}

TEST_CASE("the exit code is 0 if all ranks return 0, else that of the first that failed") {
  for (const int ranks : {1, 2, 7, 64}) {
    Running job(options(ranks), shell("exit 0"));
    CHECK(job.end().code() == 0);
    CHECK(job.end().gone);
    CHECK(job.end().err.empty());
    CHECK(job.end().out.empty());
  }
  for (const int code : {1, 3, 255}) {
    Running job(hasty(4), shell("test $MESHWISE_RANK = 2 && exit " + std::to_string(code) + "; exec sleep 60"));
    CHECK(job.end().code() == code);
    CHECK(job.end().gone);
    CHECK(has(job.end().err, "meshwise-run: rank 2 (pid "));
    CHECK(has(job.end().err, ") exited with code " + std::to_string(code) + "\n"));
  }
  Running killed(hasty(3), shell("test $MESHWISE_RANK = 1 && kill -9 $$; exec sleep 60"));
  CHECK(killed.end().code() == 128 + 9);
  CHECK(has(killed.end().err, "rank 1 (pid "));
  CHECK(has(killed.end().err, ") was killed by signal 9 (Killed)\n"));
}

TEST_CASE("programs that are not there or cannot be executed") {
  const auto run = [](const char* program) {
    Running job(hasty(3), [=](Launcher& launcher) { return launcher.run({program}); });
    CHECK(lines(job.end().err).size() == 1);
    CHECK(has(job.end().err, "meshwise-run: cannot execute \"" + std::string(program) + "\": "));
    CHECK(job.end().gone);
    return job.end().code();
  };
  CHECK(run("no-such-program-anywhere") == 127);
  CHECK(run("/no/such/program") == 127);
  CHECK(run("/dev/null/program") == 127);
  CHECK(run("/") == 126);
  char path[] = "/tmp/meshwise_program_XXXXXX";
  const int file = mkstemp(path);
  REQUIRE(write(file, "#!/no/such/interpreter\n", 23) == 23);
  close(file);
  chmod(path, 0644);
  CHECK(run(path) == 126);  // no permission
  chmod(path, 0755);
  CHECK(run(path) == 127);  // found out by every rank, told once
  unlink(path);
}

TEST_CASE("ranks find their place in the environment") {
  LauncherOptions more = options(3);
  more.environment = {"FIRST=1", "SECOND=two words", "FIRST=3", "EMPTY="};
  setenv("MESHWISE_RANK", "77", 1);  // as if this launcher were itself a rank
  setenv("FIRST", "outside", 1);
  Running job(more, shell("echo $MESHWISE_RANK/$MESHWISE_SIZE $MESHWISE_LOCAL_RANK/$MESHWISE_LOCAL_SIZE $FIRST "
                          "\"$SECOND\" \"<$EMPTY>\""));
  unsetenv("MESHWISE_RANK");
  unsetenv("FIRST");
  for (int rank = 0; rank < 3; ++rank) {
    const std::string place = std::to_string(rank) + "/3";
    CHECK(has(job.end().out, place + " " + place + " 3 two words <>\n"));
  }
}

TEST_CASE("ranks inherit what MESHWISE_JOB names, and nothing else of the launcher's") {
  // What this process has open itself is passed on as always, so it is counted before.
  const auto list =
      "for d in /proc/self/fd/*; do n=${d##*/}; case $(readlink $d) in "
      "*memfd*control*) echo control $n;; *memfd*arena*) echo arena $n;; *) echo other $n;; esac; done";
  std::FILE* const alone = popen(("exec </dev/null 2>/dev/null; " + std::string(list)).c_str(), "re");
  REQUIRE(alone != nullptr);
  std::string text(1 << 16, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), alone));
  pclose(alone);
  const int before = count(text, "other");
  Running job(options(5), shell(list + std::string("; echo $MESHWISE_JOB")));
  const std::string& out = job.end().out;
  CHECK(count(out, "control ") == 5);
  CHECK(count(out, "arena ") == 25);
  CHECK(count(out, "other ") == 5 * (before + 1));  // the end of a pipe that Running uses to see who lives
  CHECK(count(out, "control=") == 5);
  // beyond what scripts use, and as the variable says
  const std::string control =
      out.substr(out.find("control ") + 8, out.find('\n', out.find("control ")) - out.find("control ") - 8);
  CHECK(std::stoi(control) >= 64);
  CHECK(has(out, "control=" + control + ";arenas="));
}

TEST_CASE("a function in place of a program") {
  Running job(options(4), launched::ranks([](int rank, Segments& segments) {
                std::printf("%d of %d\n", rank, segments.ranks());
                // stdio, the two outputs aside: the launcher's own descriptors are closed
                return 0;
              }));
  for (int rank = 0; rank < 4; ++rank) CHECK(has(job.end().out, std::to_string(rank) + " of 4\n"));
  CHECK(job.end().code() == 0);
  Running bad(hasty(2), launched::ranks([](int rank, Segments&) {
                if (rank == 1) throw std::runtime_error("out of luck");
                stay();
                return 0;
              }));
  CHECK(bad.end().code() == 1);
  CHECK(at(bad.end().err, "rank 1: out of luck\n") < at(bad.end().err, "rank 1 (pid "));
}

TEST_CASE("input goes to rank 0") {
  Running job(options(3), shell("echo $MESHWISE_RANK $(cat)"), "some words");
  CHECK(has(job.end().out, "0 some words\n"));
  CHECK(has(job.end().out, "1\n"));
  CHECK(has(job.end().out, "2\n"));
}

TEST_CASE("a single rank is passed on as it comes, without an end of line") {
  Running job(options(1), launched::ranks([](int, Segments&) {
                put(1, "Your name: ");
                stay();
                return 0;
              }));
  CHECK(job.await("Your name: "));
  job.send(SIGTERM);
  CHECK(job.end().out == "Your name: ");
}

TEST_CASE("input from a terminal goes to rank 0, and its keys to all ranks") {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  REQUIRE(terminal >= 0);
  REQUIRE(grantpt(terminal) == 0);
  REQUIRE(unlockpt(terminal) == 0);
  std::fflush(nullptr);
  const pid_t launcher = fork();
  if (launcher == 0) {
    for (const int one : {SIGINT, SIGTERM, SIGSEGV, SIGABRT}) signal(one, SIG_DFL);
    setsid();  // the next terminal that is opened is that of the session
    const int end = open(ptsname(terminal), O_RDWR);
    for (const int one : {0, 1, 2}) dup2(end, one);
    const char* const script =
        "trap 'echo interrupted; exit 0' INT; test $MESHWISE_RANK = 0 && { read word; echo \"got $word\"; };"
        "echo up; while :; do sleep 0.02; done";
    _exit(Launcher(options(3)).run({"sh", "-c", script}));
  }
  std::string text;
  const auto await = [&](const char* what, int times) {
    char room[4096];
    while (count(text, what) < times) {
      pollfd ready{terminal, POLLIN, 0};
      if (poll(&ready, 1, 20'000) <= 0) return false;
      const ssize_t bytes = read(terminal, room, sizeof(room));
      if (bytes <= 0) return false;
      text.append(room, static_cast<std::size_t>(bytes));
    }
    return true;
  };
  CHECK(await("up", 2));
  put(terminal, "hello\n");
  CHECK(await("got hello", 1));
  CHECK(await("up", 3));
  put(terminal, "\x03");
  CHECK(await("interrupted", 3));
  int status = -1;
  CHECK(waitpid(launcher, &status, 0) == launcher);
  CHECK(status == 0);
  close(terminal);
}

TEST_CASE("the last words of the rank that fails come first, then how it ended, then what the others say") {
  for (int repeat = 0; repeat < 5; ++repeat) {
    Running job(patient(4), launched::ranks([](int rank, Segments& segments) {
                  if (rank == 2) {
                    put(2, std::string(50'000, '.') + "\nlast words");
                    _exit(3);
                  }
                  while (segments.header().record(2).ended.load() == 0) usleep(50);
                  put(2, "rank " + std::to_string(rank) + " has noticed\n");
                  return 1;
                }));
    const std::string& text = job.end().err;
    CHECK(job.end().code() == 3);
    CHECK(at(text, "\nlast words\nmeshwise-run: rank 2 (pid ") < at(text, "has noticed"));
    CHECK(count(text, "has noticed") == 3);
    CHECK(count(text, "meshwise-run: ") == 1);
    CHECK(job.end().gone);
  }
}

TEST_CASE("the rank that says to be the cause speaks first, though others end before it") {
  Running job(patient(3), launched::ranks([](int rank, Segments& segments) {
                if (rank == 1) {
                  meshwise::Report report;
                  meshwise::detail::record_failure(segments.header(), rank, report);
                  usleep(300'000);
                  put(2, "the cause\n");
                  return 4;
                }
                while (segments.header().failed.load() == 0) usleep(50);
                put(2, "an echo\n");
                return 5;
              }));
  const std::string& text = job.end().err;
  CHECK(job.end().code() == 4);
  CHECK(at(text, "the cause\nmeshwise-run: rank 1 (pid ") < at(text, "an echo"));
  CHECK(count(text, "an echo") == 2);
}

TEST_CASE("what ranks write into the control segment cannot lead the launcher astray") {
  for (const std::uint32_t failed : {99u, 0x80000000u, 0xffffffffu, 1u}) {
    Running job(hasty(3), launched::ranks([=](int rank, Segments& segments) {
                  segments.header().failed.store(failed);
                  std::printf("rank %d\n", rank);
                  if (rank == 0) stay();  // 1: it says to be the cause, and never ends
                  while (rank == 2 && segments.header().record(1).ended.load() == 0) usleep(50);
                  return rank == 2 ? 6 : 0;
                }));
    CHECK(job.end().code() == 6);
    CHECK(has(job.end().out, "rank 1\n"));
    CHECK(job.end().seconds < 30);
  }
}

TEST_CASE("ranks that do not end by themselves get SIGTERM, then SIGKILL") {
  Running job(hasty(5), launched::ranks([](int rank, Segments& segments) {
                if (rank == 0) {
                  for (const int other : {1, 3}) {
                    while (segments.header().record(other).pid.load() == 0) usleep(50);
                  }
                  while (segments.header().record(2).ended.load() == 0) usleep(50);
                  return 7;
                }
                if (rank == 1) signal(SIGTERM, SIG_IGN);
                segments.header().record(rank).pid.store(1);
                if (rank == 2) return 0;
                if (rank == 3) raise(SIGSTOP);
                stay();
                return 0;
              }));
  CHECK(job.end().code() == 7);
  CHECK(job.end().gone);
  const std::string& text = job.end().err;
  CHECK(at(text, "rank 0 (pid ") < at(text, "ranks 1, 3 and 4 still running: SIGTERM\n"));
  CHECK(at(text, "still running: SIGTERM\n") < at(text, "rank 1 still running: SIGKILL\n"));
  CHECK(count(text, "meshwise-run: ") == 3);
}

TEST_CASE("ranks that end in the time of grace are not hurried") {
  Running job(patient(2), shell("test $MESHWISE_RANK = 0 && exit 9; sleep 0.4; echo in peace"));
  CHECK(job.end().code() == 9);
  CHECK(has(job.end().out, "in peace\n"));
  CHECK(count(job.end().err, "meshwise-run: ") == 1);
}

TEST_CASE("ranks that call shrink after a failure are not ended, and later failures are told") {
  Running job(hasty(5), launched::ranks([](int rank, Segments& segments) {
                meshwise::detail::Control& control = segments.header();
                if (rank == 1) raise(SIGKILL);
                while (control.record(1).ended.load() == 0) usleep(50);
                if (rank == 4) {
                  while (true) usleep(1000);  // knows nothing of it
                }
                control.record(rank).shrinks.fetch_add(1);
                usleep(400'000);
                if (rank == 3) raise(SIGKILL);
                while (control.record(3).ended.load() == 0) usleep(50);
                control.record(rank).shrinks.fetch_add(1);
                usleep(400'000);
                put(1, "done\n");
                return 0;
              }));
  CHECK(job.end().code() == 128 + SIGKILL);
  CHECK(count(job.end().out, "done\n") == 2);
  const std::string& text = job.end().err;
  CHECK(at(text, "rank 1 (pid ") < at(text, "rank 3 (pid "));
  CHECK(at(text, "rank 3 (pid ") < at(text, "rank 4 still running: SIGTERM\n"));
  CHECK(job.end().gone);
}

TEST_CASE("with keep_going the others go on, and every failure is told") {
  LauncherOptions going = hasty(4);
  going.keep_going = true;
  going.grace = 0;
  Running job(going, launched::ranks([](int rank, Segments& segments) {
                if (rank == 1) return 11;
                while (segments.header().record(1).ended.load() == 0) usleep(50);
                usleep(200'000);
                if (rank == 3) raise(SIGKILL);
                put(1, "done\n");
                return 0;
              }));
  CHECK(job.end().code() == 11);
  CHECK(count(job.end().out, "done\n") == 2);
  CHECK(has(job.end().err, "rank 1 (pid "));
  CHECK(has(job.end().err, "rank 3 (pid "));
  CHECK(count(job.end().err, "meshwise-run: ") == 2);
}

TEST_CASE("the time-out ends the job and names who was running") {
  LauncherOptions timed = hasty(4);
  timed.timeout = 0.8;
  Running job(timed, shell("test $MESHWISE_RANK = 2 && exit 0; trap '' TERM; echo up; while :; do sleep 0.05; done"));
  CHECK(job.end().code() == 124);
  CHECK(job.end().gone);
  CHECK(has(job.end().err, "the job did not end within 0.8 s; still running: ranks 0, 1 and 3\n"));
  CHECK(has(job.end().err, "SIGKILL"));
  CHECK(count(job.end().out, "up\n") == 3);
}

TEST_CASE("signals go to all ranks and to what they have started") {
  for (const int signal : {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
    Running job(options(3), shell("(echo up; exec sleep 60) & wait; exec sleep 60"));
    while (count(job.so_far(), "up\n") < 3) REQUIRE(job.more());
    job.send(signal);
    CHECK(job.end().code() == 128 + signal);
    CHECK(job.end().gone);
    CHECK(has(job.end().err, "was killed by signal " + std::to_string(signal)));
    CHECK(job.end().seconds < 30);
  }
  for (const int signal : {SIGINT, SIGQUIT}) {  // which shells ignore for what they start with '&'
    Running job(options(3), shell("echo up; exec sleep 60"));
    while (count(job.so_far(), "up\n") < 3) REQUIRE(job.more());
    job.send(signal);
    CHECK(job.end().code() == 128 + signal);
    CHECK(job.end().gone);
  }
}

TEST_CASE("ranks decide what a signal means") {
  Running job(options(3), shell("trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.02; done"));
  while (count(job.so_far(), "up\n") < 3) REQUIRE(job.more());
  job.send(SIGTERM);
  CHECK(job.end().code() == 0);
  CHECK(count(job.end().out, "saved\n") == 3);
  CHECK(!has(job.end().err, "meshwise-run"));
}

TEST_CASE("two SIGINT within a second kill") {
  Running job(options(3), shell("trap '' INT TERM; echo up; while :; do sleep 0.02; done"));
  while (count(job.so_far(), "up\n") < 3) REQUIRE(job.more());
  for (int k = 0; k < 100 && !job.has_ended(); ++k) {  // two that come before one is read are one
    job.send(SIGINT);
    usleep(100'000);
  }
  CHECK(job.end().code() == 128 + SIGINT);
  CHECK(job.end().gone);
  CHECK(has(job.end().err, "SIGKILL"));
}

TEST_CASE("a launcher that is killed leaves nobody") {
  Running job(options(4), shell("trap '' TERM HUP INT; (trap '' TERM HUP INT; echo up; exec sleep 60) & wait"));
  while (count(job.so_far(), "up\n") < 4) REQUIRE(job.more());
  job.send(SIGKILL);
  CHECK(job.end().code() == -SIGKILL);
  CHECK(job.end().gone);
  CHECK(job.end().seconds < 30);
}

TEST_CASE("what was ignored before stays ignored") {
  Running job(options(2), [](Launcher& launcher) {
    signal(SIGHUP, SIG_IGN);
    return launcher.run({"sh", "-c", "echo up; sleep 0.5; echo still here"});
  });
  while (count(job.so_far(), "up\n") < 2) REQUIRE(job.more());
  job.send(SIGHUP);
  CHECK(job.end().code() == 0);
  CHECK(count(job.end().out, "still here\n") == 2);
}

TEST_CASE("a job that is stopped goes on") {
  Running job(options(2), launched::ranks([](int, Segments&) {
                put(1, "up\n");
                for (int k = 0; k < 10; ++k) usleep(20'000);
                return 0;
              }));
  while (count(job.so_far(), "up\n") < 2) REQUIRE(job.more());
  job.send(SIGTSTP);
  int status = 0;
  REQUIRE(waitpid(job.pid(), &status, WUNTRACED) == job.pid());
  CHECK(WIFSTOPPED(status));
  job.send(SIGCONT);
  CHECK(job.end().code() == 0);
}

TEST_CASE("a launcher leaves its process as it was") {
  struct sigaction before {};
  sigset_t mask_before, mask;
  sigaction(SIGPIPE, nullptr, &before);
  sigprocmask(SIG_SETMASK, nullptr, &mask_before);
  const auto open_ones = [] {
    int found = 0;
    DIR* const folder = opendir("/proc/self/fd");
    while (readdir(folder) != nullptr) ++found;
    closedir(folder);
    return found;
  };
  const int descriptors = open_ones();
  CHECK(Launcher(options(3)).run({"true"}) == 0);
  CHECK(open_ones() == descriptors);
  struct sigaction after {};
  sigaction(SIGPIPE, nullptr, &after);
  sigprocmask(SIG_SETMASK, nullptr, &mask);
  const bool same_handler = before.sa_handler == after.sa_handler;
  CHECK(same_handler);
  for (const int one : {SIGINT, SIGTERM, SIGCONT}) CHECK(sigismember(&mask, one) == sigismember(&mask_before, one));
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);  // no child is left
}

TEST_CASE("binding gives every rank processors that this process may use") {
  LauncherOptions bound = options(3);
  bound.bind = meshwise::Bind::core;
  Running job(bound, shell("grep Cpus_allowed_list: /proc/self/status"));
  CHECK(count(job.end().out, "Cpus_allowed_list:") == 3);
  CHECK(job.end().code() == 0);
}
