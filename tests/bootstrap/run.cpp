// SPDX-License-Identifier: Apache-2.0
#include "meshwise/bootstrap/run.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "meshwise/core/error.hpp"
#include "meshwise/fabric/memory/cores.hpp"

using meshwise::fabrics;
using meshwise::LaunchOptions;
using meshwise::run;
using meshwise::RunOptions;

namespace {

/// What a test's fabric was asked to do.
struct Asked {
  const char* who = "";
  int ranks = 0;
  double deadline = 0;
  std::string name;
};

/// Stands for a communicator: the program sees what the fabric was asked.
template <class Tag>
struct Double {
  template <class Program>
  static void run(int ranks, const LaunchOptions& options, Program& program) {
    program(Asked{Tag::name(), ranks, options.deadline, options.name});
  }
};

struct anywhere : Double<anywhere> {
  static const char* name() { return "anywhere"; }
  static bool fits() { return true; }
};
struct elsewhere : Double<elsewhere> {
  static const char* name() { return "elsewhere"; }
  static bool fits() { return true; }
};
struct nowhere : Double<nowhere> {
  static const char* name() { return "nowhere"; }
  static bool fits() { return false; }
};
struct launched_by_somebody : Double<launched_by_somebody> {
  static const char* name() { return "launched"; }
  static bool fits() { return true; }
  static int size() { return 6; }
  static int rank() { return 2; }
};
struct confused : Double<confused> {
  static const char* name() { return "confused"; }
  static bool fits() { meshwise::fail("confused", "sense", "none", "look again"); }
};

/// A variable, for as long as this lives.
struct Variable {
  const char* name;
  Variable(const char* name_, const char* value) : name(name_) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name); }
};

/// What a function writes to stderr.
template <class Function>
std::string written(Function function) {
  char path[] = "/tmp/meshwise_run_XXXXXX";
  const int file = mkstemp(path);
  unlink(path);
  std::fflush(stderr);
  const int before = dup(2);
  dup2(file, 2);
  function();
  std::fflush(stderr);
  dup2(before, 2);
  close(before);
  std::string text(4096, '\0');
  const ssize_t bytes = pread(file, text.data(), text.size(), 0);
  text.resize(bytes < 0 ? 0 : static_cast<std::size_t>(bytes));
  close(file);
  return text;
}

}  // namespace

TEST_CASE("the first fabric that fits runs the program") {
  Asked asked;
  const auto program = [&](const Asked& one) { asked = one; };
  CHECK(run<fabrics<anywhere, elsewhere>>(program) == 0);
  CHECK(std::string(asked.who) == "anywhere");
  CHECK(run<fabrics<nowhere, elsewhere, anywhere>>(program) == 0);
  CHECK(std::string(asked.who) == "elsewhere");
  CHECK(run<fabrics<elsewhere>>(program) == 0);
}

TEST_CASE("options reach the fabric") {
  Asked asked;
  RunOptions options;
  options.deadline = 7;
  options.name = "mine";
  options.ranks = 5;
  CHECK(run<fabrics<anywhere>>(options, [&](const Asked& one) { asked = one; }) == 0);
  CHECK(asked.ranks == 5);
  CHECK(asked.deadline == 7);
  CHECK(asked.name == "mine");
}

TEST_CASE("a program that may not be copied, and may not be const") {
  struct Once {
    int calls = 0;
    Once() = default;
    Once(const Once&) = delete;
    void operator()(const Asked&) { ++calls; }
  } once;
  CHECK(run<fabrics<anywhere>>(once) == 0);
  CHECK(once.calls == 1);
}

TEST_CASE("the number of ranks: asked for, MESHWISE_RANKS, cores") {
  unsetenv("MESHWISE_RANKS");
  int ranks = 0;
  const auto program = [&](const Asked& one) { ranks = one.ranks; };
  RunOptions three;
  three.ranks = 3;
  CHECK(run<fabrics<anywhere>>(program) == 0);
  CHECK(ranks == meshwise::detail::usable_cores());
  const Variable variable("MESHWISE_RANKS", "11");
  CHECK(run<fabrics<anywhere>>(program) == 0);
  CHECK(ranks == 11);
  CHECK(run<fabrics<anywhere>>(three, program) == 0);
  CHECK(ranks == 3);
  CHECK(run<fabrics<launched_by_somebody>>(program) == 0);
  CHECK(ranks == 6);
  for (const char* const bad : {"0", "-1", "4097", "two", "3 "}) {
    setenv("MESHWISE_RANKS", bad, 1);
    const std::string text = written([&] { CHECK(run<fabrics<anywhere>>(program) == 1); });
    CHECK(text.find("MESHWISE_RANKS: ") != std::string::npos);
    CHECK(text.find("\"" + std::string(bad) + "\"") != std::string::npos);
  }
  setenv("MESHWISE_RANKS", "", 1);
  CHECK(run<fabrics<anywhere>>(program) == 0);
  CHECK(ranks == meshwise::detail::usable_cores());
}

TEST_CASE("another number than the launcher's is an error only if it was asked for") {
  bool called = false;
  const auto program = [&](const Asked&) { called = true; };
  RunOptions options;
  options.ranks = 5;
  const std::string text = written([&] { CHECK(run<fabrics<launched_by_somebody>>(options, program) == 1); });
  CHECK(!called);
  CHECK(text.find("rank 2: ") == 0);
  CHECK(text.find("5 ranks") != std::string::npos);
  CHECK(text.find("found 6") != std::string::npos);
  options.ranks = 6;
  CHECK(run<fabrics<launched_by_somebody>>(options, program) == 0);
  CHECK(called);
}

TEST_CASE("MESHWISE_FABRIC forces one of the list") {
  Asked asked;
  const auto program = [&](const Asked& one) { asked = one; };
  {
    const Variable variable("MESHWISE_FABRIC", "elsewhere");
    CHECK(run<fabrics<anywhere, elsewhere>>(program) == 0);
    CHECK(std::string(asked.who) == "elsewhere");
  }
  {
    const Variable variable("MESHWISE_FABRIC", "");
    CHECK(run<fabrics<anywhere, elsewhere>>(program) == 0);
    CHECK(std::string(asked.who) == "anywhere");
  }
  for (const char* const bad : {"nowhere", "Anywhere", "any", "\x1b[31m"}) {
    const Variable variable("MESHWISE_FABRIC", bad);
    const std::string text = written([&] { CHECK(run<fabrics<anywhere, nowhere>>(program) == 1); });
    INFO(text);
    CHECK(text.find("MESHWISE_FABRIC: ") != std::string::npos);
    CHECK(text.find('\x1b') == std::string::npos);
    if (std::string(bad) != "nowhere") CHECK(text.find("one of anywhere, nowhere") != std::string::npos);
  }
}

TEST_CASE("no fabric that fits is an error that names them") {
  const std::string text = written([&] { CHECK(run<fabrics<nowhere>>([](const Asked&) {}) == 1); });
  CHECK(text.find("one of the fabrics nowhere") != std::string::npos);
  CHECK(text.find("meshwise-run") != std::string::npos);
}

TEST_CASE("what the program throws is one line, once") {
  const auto text_of = [](auto throws) {
    return written([&] { CHECK(run<fabrics<anywhere>>([&](const Asked&) { throws(); }) == 1); });
  };
  CHECK(text_of([] { throw std::runtime_error("first\nsecond"); }) == "first second\n");
  CHECK(text_of([] { throw 3; }) == "an exception that is no std::exception\n");
  CHECK(text_of([] { meshwise::fail("verb", "this", "that", "remedy", 1); }) ==
        "verb (rank 1): expected this, found that; remedy\n");
  CHECK(written([&] {
          CHECK(run<fabrics<launched_by_somebody>>([](const Asked&) { throw std::runtime_error("no"); }) == 1);
        }) == "rank 2: no\n");
  CHECK(written([&] { CHECK(run<fabrics<confused, anywhere>>([](const Asked&) {}) == 1); }).find("look again") !=
        std::string::npos);
}
