// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/tuning/job_settings.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "../../support/standard_error.hpp"
#include "../calls.hpp"
#include "meshwise/collective/all_gather.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/fabric/memory/cores.hpp"
#include "meshwise/fabric/thread/launch.hpp"

using namespace meshwise;

namespace {

/// A file with a text, which goes with this.
class File {
 public:
  explicit File(const std::string& text) {
    char name[] = "/tmp/meshwise_table_XXXXXX";
    const int made = mkstemp(name);
    REQUIRE(made >= 0);
    path = name;
    REQUIRE(write(made, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    close(made);
  }
  ~File() { unlink(path.c_str()); }

  std::string path;
};

/// A table for here, or for a host with other cores.
std::string table(const std::string& lines, int more_cores = 0) {
  SelectionFile file;
  file.fingerprint = Fingerprint::here(detail::usable_cores() + more_cores);
  return file.text() + lines;
}

/// With MESHWISE_TUNING set, as long as this lives.
struct Tuned {
  explicit Tuned(const std::string& path) { setenv("MESHWISE_TUNING", path.c_str(), 1); }
  ~Tuned() { unsetenv("MESHWISE_TUNING"); }
};

std::size_t lines_of(const std::string& text) {
  std::size_t count = 0;
  for (const char c : text) count += c == '\n';
  return count;
}

std::string refusal(const std::string& path) {
  try {
    static_cast<void>(read_selection_table(path, "thread", 2));
  } catch (const Error& error) {
    CHECK(error.code() == Code::invalid_argument);
    return error.what();
  }
  return "no error";
}

bool says(const std::string& text, const std::string& word) { return text.find(word) != std::string::npos; }

std::string explained(const LaunchOptions& options, int ranks, Operation operation, std::uint64_t bytes) {
  std::string text;
  launch(ranks, options, [&](Communicator& world) {
    const std::string own = world.explain(operation, bytes);
    if (world.rank() == 0) text = own;
  });
  return text;
}

}  // namespace

TEST_CASE("the table that the environment names changes what is chosen, and the results stay right") {
  const File file(
      table("all_reduce thread memory 4 64K-1M ring:lanes=2\nall_reduce shared_memory memory 4 0-64K ring\n"));
  CHECK(says(explained({}, 4, Operation::all_reduce, 1 << 17), "chosen: direct"));
  const Tuned tuned(file.path);
  CHECK(says(explained({}, 4, Operation::all_reduce, 1 << 17), "chosen: ring, 2 lanes: the measured table says so"));
  CHECK(says(explained({}, 4, Operation::all_reduce, 1 << 20), "chosen: direct"));
  CHECK(says(explained({}, 4, Operation::all_reduce, 4096), "chosen: direct"));
  launch(4, [](Communicator& world) {
    std::vector<int> data(1 << 15, world.rank() + 1);
    const std::uint64_t before = world.traffic().messages;
    all_reduce(world, data);
    CHECK(data.front() == 10);
    CHECK(data.back() == 10);
    CHECK(world.traffic().messages - before == 2 * 2 * 3);  // 2 (p - 1) hops in 2 lanes
  });
}

TEST_CASE("a table from elsewhere is ignored, with one line for the whole job") {
  const File file(table("all_reduce thread memory 4 0-inf teleport\n", 3));
  const Tuned tuned(file.path);
  std::string said;
  const std::string text = captured::written([&] { said = explained({}, 4, Operation::all_reduce, 1 << 17); });
  CAPTURE(text);
  CHECK(says(said, "chosen: direct"));
  CHECK(lines_of(text) == 1);
  CHECK(says(text, "warning: MESHWISE_TUNING: " + file.path + " is ignored: it was measured with cores "));
  CHECK(says(text, ", here is "));
  const std::string quiet = captured::written(
      [&] { CHECK(read_selection_table(file.path, "thread", detail::usable_cores(), LogLevel::error).empty()); });
  CHECK(quiet.empty());
}

TEST_CASE("a table of another format or version is ignored too") {
  const File later("meshwise-table 7\nwhatever\n");
  const File other("meshwise-table 1\nversion 99.1.2\nall_reduce thread memory 4 0-inf teleport\n");
  std::string text = captured::written([&] { CHECK(read_selection_table(later.path, "thread", 2).empty()); });
  CHECK(says(text, "its format is 7, this library reads 1; run meshwise-tune here"));
  text = captured::written([&] { CHECK(read_selection_table(other.path, "thread", 2).empty()); });
  CHECK(says(text, "it was measured with version 99.1.2, here is"));
}

TEST_CASE("a table without a fingerprint holds everywhere") {
  const File file("meshwise-table 1\nall_reduce * memory 4 0-inf ring\n");
  CHECK(read_selection_table(file.path, "thread", 77).size == 1);
}

TEST_CASE("files that are no tables are refused by name") {
  CHECK(says(refusal("/no/such/table"), "MESHWISE_TUNING: /no/such/table: expected a measured table that can be read"));
  CHECK(says(refusal("/no/such/table"), "No such file"));
  CHECK(says(refusal("/tmp"), "something other than a file"));
  CHECK(says(refusal("/dev/zero"), "something other than a file"));
  const File empty("");
  CHECK(says(refusal(empty.path), ":0: expected the first line"));
  const File huge(std::string((std::size_t{1} << 20) + 1, '\n'));
  CHECK(says(refusal(huge.path), "more than 1048576 bytes"));
  const File wrong("meshwise-table 1\n\nall_reduce thread memory 4 0-inf rnig\n");
  CHECK(says(refusal(wrong.path), wrong.path + ":3: expected an algorithm: "));
  CHECK(says(refusal(wrong.path), "found \"rnig\""));
  char fifo[] = "/tmp/meshwise_fifo_XXXXXX";
  REQUIRE(mkdtemp(fifo) != nullptr);
  const std::string path = std::string(fifo) + "/fifo";
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  CHECK(says(refusal(path), "something other than a file"));  // and does not wait for a writer
  unlink(path.c_str());
  rmdir(fifo);
  const Tuned tuned(wrong.path);
  CHECK_THROWS_WITH_AS(launch(2, [](Communicator&) {}), doctest::Contains("rnig"), Error);
}

TEST_CASE("settings with a table of their own do without the environment") {
  const File file(table("all_reduce thread memory 2 0-inf circulant\n"));
  const Tuned tuned(file.path);
  LaunchOptions options;
  options.settings = Settings{};
  CHECK(says(explained(options, 2, Operation::all_reduce, 1 << 17), "chosen: direct"));
  options.settings->table.rules[options.settings->table.size++] =
      SelectionRule{Operation::all_reduce, Way::memory, Algorithm::ring, 2, 0, 0, SelectionTable::no_end};
  CHECK(says(explained(options, 2, Operation::all_reduce, 1 << 17), "chosen: ring"));
}

TEST_CASE("a rule for small calls takes the place of windows, for its sizes only") {
  LaunchOptions options;
  options.settings = Settings{};
  const auto messages = [&](std::size_t count) {
    std::uint64_t number = 0;
    launch(4, options, [&](Communicator& world) {
      std::vector<float> data(count, 1.0F);
      all_reduce(world, data);
      CHECK(data[count - 1] == 4.0F);
      if (world.rank() == 0) number = world.traffic().messages;
    });
    return number;
  };
  const std::uint64_t windows = messages(8);
  CHECK(windows == 3);
  options.settings->table.rules[options.settings->table.size++] =
      SelectionRule{Operation::all_reduce, Way::memory, Algorithm::ring, 4, 1, 64, 256};
  CHECK(messages(8) == windows);   // 32 bytes
  CHECK(messages(64) == windows);  // 256
  CHECK(messages(16) == 2 * 3);    // 64: a ring
  CHECK(messages(63) == 2 * 3);    // 252
}

TEST_CASE("foreign buffers: a rule turns from windows to messages, if its algorithm fits") {
  LaunchOptions options;
  options.settings = Settings{};
  options.foreign = true;
  options.settings->table.rules[options.settings->table.size++] =
      SelectionRule{Operation::all_reduce, Way::foreign, Algorithm::ring, 4, 2, 1 << 16, 1 << 18};
  const auto run = [&](auto one, std::size_t count) {
    std::uint64_t number = 0;
    launch(4, options, [&](Communicator& world) {
      std::vector<decltype(one)> data(count, one), sum(count);
      all_reduce(world, std::span<const decltype(one)>(data), std::span<decltype(one)>(sum));
      CHECK(static_cast<float>(sum[count - 1]) == 4.0F);
      if (world.rank() == 0) number = world.traffic().messages;
    });
    return number;
  };
  const std::uint64_t windows = run(1.0F, 1 << 13);
  CHECK(run(1.0F, 1 << 14) == 2 * 2 * 3);  // a ring in two lanes
  CHECK(run(1.0F, 1 << 16) == windows);
  CHECK(run(bf16(1.0F), 1 << 15) == windows);  // partial sums of them would round
}

TEST_CASE("whatever a table says, all operations are right in all ways") {
  std::mt19937 dice(3);
  const auto throws = [&](unsigned sides) { return static_cast<int>(dice() % sides); };
  for (int turn = 0; turn < 24; ++turn) {
    const int ranks = 2 + turn % 4;
    LaunchOptions options;
    options.settings = Settings{};
    options.foreign = turn / 4 % 3 == 1;
    options.messages = turn / 4 % 3 == 2;
    SelectionTable& table = options.settings->table;
    for (int k = 0; k < operation_count; ++k) {
      for (int way = 0; way < way_count; ++way) {
        for (std::uint64_t from = 0; from < 1 << 18 && table.size < SelectionTable::most_rules;) {
          const std::uint64_t to = from == 0 ? std::uint64_t{64} << throws(4) : from << (1 + throws(5));
          const auto algorithm = static_cast<Algorithm>(throws(algorithm_count - 1));
          table.rules[table.size++] = SelectionRule{static_cast<Operation>(k),
                                                    static_cast<Way>(way),
                                                    algorithm,
                                                    ranks - throws(2),
                                                    algorithm == Algorithm::automatic ? 0 : throws(4),
                                                    from,
                                                    to};
          from = to;
        }
      }
    }
    launch(ranks, options, [&](Communicator& world) {
      for (const Operation operation : calls::operations) {
        for (const std::size_t count : {1UL, 5UL, 64UL, 300UL, 3000UL, 20000UL}) {
          for (const int kind : {0, 1, 2}) {
            calls::Case one(operation, ranks, rooted(operation) ? static_cast<int>(count) % ranks : 0, count,
                            world.rank());
            Call call = one.call();
            call.reproducible = kind == 1;
            call.commutative = kind != 2;
            world.endpoint().run(call);
            if (!one.right()) FAIL_CHECK(one.describe());
          }
        }
      }
    });
  }
}
