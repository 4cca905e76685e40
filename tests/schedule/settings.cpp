// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/settings.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <random>
#include <string>

using namespace meshwise;

namespace {

std::string refusal(const char* algorithms, const char* lanes = "") {
  try {
    static_cast<void>(Settings::parse(algorithms, lanes));
  } catch (const Error& error) {
    CHECK(error.code() == Code::invalid_argument);
    return error.what();
  }
  return "no error";
}

bool says(const std::string& text, const char* word) { return text.find(word) != std::string::npos; }

constexpr bool every_name_parses() {
  for (int k = 0; k < algorithm_count; ++k) {
    Algorithm algorithm = Algorithm::custom;
    if (!parse(algorithm_name(static_cast<Algorithm>(k)), algorithm) || static_cast<int>(algorithm) != k) return false;
  }
  for (int k = 0; k < operation_count; ++k) {
    Operation operation = Operation::exchange;
    if (!parse(operation_name(static_cast<Operation>(k)), operation) || static_cast<int>(operation) != k) return false;
  }
  return true;
}
static_assert(every_name_parses());

}  // namespace

TEST_CASE("names that are none leave the value alone") {
  Algorithm algorithm = Algorithm::ring;
  for (const char* name : {"", "Ring", "ring ", "rin", "unknown"}) CHECK_FALSE(parse(name, algorithm));
  CHECK(algorithm == Algorithm::ring);
  Operation operation = Operation::gather;
  for (const char* name : {"", "no operation", "allreduce"}) CHECK_FALSE(parse(name, operation));
  CHECK(operation == Operation::gather);
}

TEST_CASE("settings force by operation, and the rest") {
  const Settings none = Settings::parse("", "");
  CHECK(none == Settings{});
  for (int k = 0; k < operation_count; ++k) {
    CHECK(none.of(static_cast<Operation>(k)) == Settings::Forced{Algorithm::automatic, 0});
  }
  const Settings some = Settings::parse("all_reduce=ring;broadcast=binomial:lanes=4;circulant", "");
  CHECK(some.of(Operation::all_reduce) == Settings::Forced{Algorithm::ring, 0});
  CHECK(some.of(Operation::broadcast) == Settings::Forced{Algorithm::binomial, 4});
  CHECK(some.of(Operation::gather) == Settings::Forced{Algorithm::circulant, 0});
  CHECK(some.of(Operation::exchange) == Settings::Forced{Algorithm::circulant, 0});
  CHECK(Settings::parse(" ; all_reduce = ring ;; circulant; broadcast = binomial : lanes = 4 ;", "") == some);
  CHECK(some.signature() == Settings::parse("circulant;all_reduce=ring;broadcast=binomial:lanes=4", "").signature());
  CHECK(some.signature() != none.signature());

  const Settings lanes = Settings::parse("ring:lanes=2;scatter=direct", "gather=8;3");
  CHECK(lanes.of(Operation::gather) == Settings::Forced{Algorithm::ring, 8});
  CHECK(lanes.of(Operation::scatter) == Settings::Forced{Algorithm::direct, 3});
  CHECK(lanes.of(Operation::reduce) == Settings::Forced{Algorithm::ring, 3});
  CHECK(Settings::parse("automatic", "") == none);
  CHECK(Settings::parse("ring;reduce=automatic", "").of(Operation::reduce).algorithm == Algorithm::automatic);
}

TEST_CASE("text that means nothing is refused, with the variable, the word and what would do") {
  CHECK(says(refusal("rign"), "MESHWISE_ALGORITHM: expected one of"));
  CHECK(says(refusal("rign"), "\"rign\""));
  CHECK(says(refusal("rign"), "halving_doubling"));
  CHECK_FALSE(says(refusal("rign"), "custom"));
  CHECK(says(refusal("custom"), "\"custom\""));
  CHECK(says(refusal("allreduce=ring"), "all_reduce, reduce_scatter"));
  CHECK(says(refusal("all_reduce="), "found \"\""));
  CHECK(says(refusal("=ring"), "found \"\""));
  CHECK(says(refusal("ring:lines=4"), "lanes=N"));
  CHECK(says(refusal("ring:lanes"), "number of lanes"));
  for (const char* number : {"0", "-1", "1025", "99999999999999999999", "4x", "+4", "1 2", "0x4", ""}) {
    CHECK(says(refusal((std::string("ring:lanes=") + number).c_str()), "number of lanes from 1 to 1024"));
    if (*number != '\0') CHECK(says(refusal("", number), "MESHWISE_LANES: expected a number of lanes"));
  }
  CHECK(says(refusal("ring;direct"), "a second one"));
  CHECK(says(refusal("gather=ring;gather=ring"), "one entry for each operation"));
  CHECK(says(refusal("", "gather=2;gather=2"), "one entry for each operation"));
  CHECK(says(refusal("", "ring"), "number of lanes"));
  const std::string hostile = refusal(("\x1b[2J\n" + std::string(100000, 'a')).c_str());
  CHECK(says(hostile, "\"?[2J?aaa"));
  CHECK(hostile.size() < 600);
  CHECK(hostile.find('\n') == std::string::npos);
}

TEST_CASE("arbitrary bytes are read or refused, nothing else") {
  std::mt19937 random(11);
  const std::string alphabet = "=;: \t0123456789all_reduce=ring:lanes=4;binomial\x80\xff\x01";
  for (int trial = 0; trial < 20000; ++trial) {
    std::string text;
    for (std::size_t k = random() % 24; k > 0; --k) text += alphabet[random() % alphabet.size()];
    try {
      const Settings settings = Settings::parse(text, trial % 2 == 0 ? "" : text);
      for (int k = 0; k < operation_count; ++k) {
        const Settings::Forced& forced = settings.of(static_cast<Operation>(k));
        REQUIRE(forced.algorithm != Algorithm::custom);
        REQUIRE(forced.lanes >= 0);
        REQUIRE(forced.lanes <= most_lanes);
      }
    } catch (const Error&) {}
  }
}

TEST_CASE("the environment is read when asked") {
  REQUIRE(setenv("MESHWISE_ALGORITHM", "all_gather=bruck", 1) == 0);
  REQUIRE(setenv("MESHWISE_LANES", "2", 1) == 0);
  CHECK(Settings::from_environment() == Settings::parse("all_gather=bruck", "2"));
  REQUIRE(setenv("MESHWISE_LOG", "info", 1) == 0);
  CHECK(Settings::from_environment().log == LogLevel::info);
  CHECK(Settings::from_environment().signature() == Settings::parse("all_gather=bruck", "2").signature());
  REQUIRE(unsetenv("MESHWISE_LOG") == 0);
  REQUIRE(setenv("MESHWISE_LANES", "two", 1) == 0);
  CHECK_THROWS_AS(static_cast<void>(Settings::from_environment()), Error);
  REQUIRE(unsetenv("MESHWISE_ALGORITHM") == 0);
  REQUIRE(unsetenv("MESHWISE_LANES") == 0);
  CHECK(Settings::from_environment() == Settings{});
}

TEST_CASE("the level of the log is one of a few words") {
  CHECK(Settings::parse_log("") == LogLevel::warning);
  CHECK(Settings::parse_log("  ") == LogLevel::warning);
  CHECK(Settings::parse_log(" debug ") == LogLevel::debug);
  CHECK(Settings::parse_log("off") == LogLevel::off);
  std::string text;
  try {
    static_cast<void>(Settings::parse_log("verbose\n"));
  } catch (const Error& error) {
    text = error.what();
  }
  CHECK(text ==
        "MESHWISE_LOG: expected one of off, error, warning, info, debug, found \"verbose?\"; choose one, or remove the "
        "variable");
}
