// SPDX-License-Identifier: Apache-2.0
// The parts of tools/meshwise_tune.cpp: its command line, its statistics, and the rules that it makes of what it has
// measured.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "../../tools/tune/contest.hpp"
#include "../../tools/tune/job.hpp"
#include "../../tools/tune/options.hpp"
#include "../../tools/tune/rules.hpp"
#include "../support/run.hpp"

using namespace meshwise;
using tune::Point;

namespace {

tune::Options read(std::vector<std::string> words) {
  words.insert(words.begin(), "meshwise-tune");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  return tune::read(static_cast<int>(arguments.size()), arguments.data());
}

std::string refusal_of(const std::vector<std::string>& words) {
  try {
    static_cast<void>(read(words));
  } catch (const tune::Refusal& refusal) {
    return refusal.text;
  }
  return "not refused";
}

Point point(std::uint64_t bytes, Algorithm algorithm, int lanes = 1) {
  Point one{"thread", 4, Way::memory, Operation::all_reduce, bytes};
  one.result = tune::Result{algorithm, algorithm == Algorithm::automatic ? 0 : lanes, 1e-6, 1.5e-6};
  return one;
}

}  // namespace

TEST_CASE("the command line") {
  const tune::Options usual = read({});
  CHECK(usual.ranks == std::vector<int>{2, 4, 8});
  CHECK(usual.sizes().front() == 64);
  CHECK(usual.sizes().back() == std::uint64_t{16} << 20);
  const tune::Options some = read({"--ranks=3", "--fabric", "thread", "--operations", "reduce,gather", "--ways",
                                   "memory", "-b", "1K", "-e", "4M", "--seconds", "1.5"});
  CHECK(some.ranks == std::vector<int>{3});
  CHECK(some.operations == std::vector<Operation>{Operation::reduce, Operation::gather});
  CHECK(some.sizes() == std::vector<std::uint64_t>{1024, 4096, 16384, 65536, 262144, 1 << 20, 1 << 22});
  CHECK(some.seconds == 1.5);
  CHECK(tune::points_of(some).size() == 2 * 7);
}

TEST_CASE("wrong usage is refused with what would be right") {
  const auto says = [](const std::vector<std::string>& words, const std::string& expected) {
    CAPTURE(expected);
    CHECK(refusal_of(words).find(expected) != std::string::npos);
  };
  for (const char* ranks : {"1", "0", "-2", "257", "two", "2,,4", "", "2,", "4x", "99999999999"}) {
    says({"--ranks", ranks}, "--ranks needs");
  }
  says({"--ranks", "2,4,2"}, "--ranks names \"2\" twice");
  says({"--ranks"}, "--ranks needs a value behind it");
  says({"--fabric", "mpi"}, "not \"mpi\"");
  says({"--operations", "all_reduce,exchange"}, "--operations does not know \"exchange\"");
  says({"--ways", "windows"}, "memory, foreign or messages");
  for (const char* bytes : {"4", "100", "17G", "-8", "64k", "K", "", "36893488147419103232"}) {
    says({"-b", bytes}, "-b needs a power of two from 8 to 16G");
  }
  says({"-b", "1M", "-e", "1K"}, "--minbytes is greater than --maxbytes");
  for (const char* seconds : {"0", "nan", "inf", "-5", "5m", ""})
    says({"--seconds", seconds}, "--seconds needs a number");
  says({"--output", ""}, "the name of a file");
  says({"--outputs", "x"}, "unknown option \"--outputs\"");
  says({"table.txt"}, "unexpected \"table.txt\"");
  CHECK(read({"--help", "--nonsense"}).print == tune::help);
}

TEST_CASE("threads have no foreign buffers, and the points of a job follow each other") {
  const std::vector<Point> points = tune::points_of(read({"--ranks", "2,4"}));
  CHECK(points.size() == std::size_t{2 * (3 + 2) * 8 * 10});
  for (const Point& one : points) CHECK((one.fabric != "thread" || one.way != Way::foreign));
}

TEST_CASE("medians, and how low they may be") {
  CHECK(tune::median({3}) == 3);
  CHECK(tune::median({4, 1, 3}) == 3);
  CHECK(tune::median({4, 1, 3, 2}) == 2.5);
  CHECK(tune::least_median({5, 5, 5, 5, 5}) == 0);
  std::vector<double> values;
  for (int k = 1; k <= 15; ++k) values.push_back(k);
  CHECK(tune::least_median(values) == 3);  // by binomial tables 4 of 15 at the most; never more
  for (int k = 16; k <= 51; ++k) values.push_back(k);
  CHECK(tune::least_median(values) == 18);  // as in those tables, of 51
}

TEST_CASE("rows of sizes with one winner become one rule, without gaps and to both ends") {
  std::vector<Point> points{point(64, Algorithm::automatic), point(256, Algorithm::ring), point(1024, Algorithm::ring),
                            point(4096, Algorithm::ring, 4), point(16384, Algorithm::automatic)};
  points.push_back(points[1]);
  points.back().ranks = 8;
  const auto entries = tune::rules_of(points);
  REQUIRE(entries.size() == 5);
  const auto is = [&](std::size_t k, Algorithm algorithm, std::uint64_t from, std::uint64_t to) {
    CAPTURE(k);
    CHECK(entries[k].rule.algorithm == algorithm);
    CHECK(entries[k].rule.from == from);
    CHECK(entries[k].rule.to == to);
  };
  is(0, Algorithm::automatic, 0, 128);
  is(1, Algorithm::ring, 128, 2048);
  is(2, Algorithm::ring, 2048, 8192);
  is(3, Algorithm::automatic, 8192, SelectionTable::no_end);
  is(4, Algorithm::ring, 0, SelectionTable::no_end);
  CHECK(entries[1].comment == "1.50 to 1.50 times as fast as automatic");
  CHECK(entries[0].comment.empty());
  SelectionFile file;
  file.entries = entries;
  const SelectionFile again = SelectionFile::parse(file.text(), "t");
  CHECK(again.table("thread", "t").find(Operation::all_reduce, Way::memory, 4, 4096)->lanes == 4);
  CHECK(tune::rules_of({}).empty());
}

TEST_CASE("all algorithms that can do an operation contend, and none of them is what the library does anyway") {
  for (const int ranks : {2, 3, 8}) {
    Selector selector(Topology::flat(ranks));
    for (int k = 0; k < operation_count - 1; ++k) {
      for (const Way way : {Way::memory, Way::foreign, Way::messages}) {
        Question question;
        question.shape = Shape{static_cast<Operation>(k), ranks, 0, rooted(static_cast<Operation>(k))};
        question.bytes = std::uint64_t{1} << 20;
        question.memory = way == Way::memory;
        question.foreign = way == Way::foreign;
        const auto all = tune::contestants(selector, question);
        CHECK(all.front().options.algorithm == Algorithm::automatic);
        for (std::size_t i = 1; i < all.size(); ++i) {
          Question wanted = question;
          wanted.wanted = all[i].options.algorithm;
          wanted.lanes = all[i].options.lanes;
          const Choice choice = selector.choose(wanted);  // it fits
          if (way != Way::foreign) CHECK(choice != selector.choose(question));
        }
      }
    }
  }
}

TEST_CASE("what is measured on ranks is a table that is read again") {
  std::vector<Point> points = tune::points_of(read(
      {"--ranks", "2", "--operations", "all_reduce,broadcast", "-b", "1K", "-e", "4K", "--ways", "memory,messages"}));
  const int cores = tune::measure(points, 0.1);
  CHECK(cores >= 1);
  SelectionFile file;
  file.fingerprint = Fingerprint::here(cores);
  file.entries = tune::rules_of(points);
  const SelectionFile again = SelectionFile::parse(file.text(), "t");
  for (const char* fabric : SelectionFile::fabrics) {
    const SelectionTable table = again.table(fabric, "t");
    CHECK(table.size >= 4);
    Settings settings;
    settings.table = table;
    for (const Point& one : points) {
      if (one.fabric != fabric) continue;
      Selector selector(Topology::flat(2), settings);
      Question question;
      question.shape = Shape{one.operation, 2, 0, rooted(one.operation)};
      question.bytes = one.bytes;
      question.memory = one.way == Way::memory;
      const SelectionRule* const rule = selector.rule(question);
      CHECK((rule == nullptr ? Algorithm::automatic : rule->algorithm) == one.result.algorithm);
      CHECK((rule == nullptr ? 0 : rule->lanes) == one.result.lanes);
    }
  }
}
