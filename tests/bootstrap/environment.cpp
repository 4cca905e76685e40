// SPDX-License-Identifier: Apache-2.0
#include "meshwise/bootstrap/environment.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "meshwise/core/error.hpp"

using meshwise::Code;
using meshwise::Error;
using meshwise::Place;
using meshwise::place_from_environment;
using meshwise::detail::PlaceReader;
using meshwise::detail::PlaceVariables;

namespace {

/// Descriptors that are open as long as this lives.
struct Open {
  std::vector<int> numbers;
  explicit Open(int count) {
    for (int k = 0; k < count; ++k) numbers.push_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
  ~Open() {
    for (const int one : numbers) close(one);
  }
};

std::string job_of(const Open& open) {
  return PlaceReader::job(open.numbers[0], {open.numbers.begin() + 1, open.numbers.end()});
}

std::optional<Place> read(const char* rank, const char* size, const char* local_rank, const char* local_size,
                          const char* job) {
  PlaceVariables variables;
  const char* const values[] = {rank, size, local_rank, local_size, job};
  for (int k = 0; k < PlaceVariables::count; ++k) variables.values[k] = values[k];
  return PlaceReader::read(variables);
}

/// What is refused, as text; empty if nothing is.
std::string refusal(const char* rank, const char* size, const char* local_rank, const char* local_size,
                    const char* job) {
  try {
    (void)read(rank, size, local_rank, local_size, job);
  } catch (const Error& error) {
    CHECK(error.code() == Code::invalid_argument);
    CHECK(!error.report().remedy.empty());
    return error.what();
  }
  return "";
}

bool says(const std::string& text, const std::string& first, const std::string& second) {
  INFO(text);
  const bool right = text.find(first) != std::string::npos && text.find(second) != std::string::npos;
  CHECK(right);
  return right;
}

}  // namespace

TEST_CASE("a process that no launcher has started has no place") {
  CHECK(!read(nullptr, nullptr, nullptr, nullptr, nullptr));
}

TEST_CASE("what a launcher writes is what a rank reads") {
  for (const int ranks : {1, 2, 3, 9}) {
    const Open open(ranks + 1);
    const std::string size = std::to_string(ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      const std::string text = std::to_string(rank);
      const auto place = read(text.c_str(), size.c_str(), text.c_str(), size.c_str(), job_of(open).c_str());
      REQUIRE(place);
      CHECK(place->rank == rank);
      CHECK(place->size == ranks);
      CHECK(place->local_rank == rank);
      CHECK(place->local_size == ranks);
      CHECK(place->control == open.numbers[0]);
      CHECK(place->arenas == std::vector<int>(open.numbers.begin() + 1, open.numbers.end()));
    }
  }
}

TEST_CASE("descriptors are written in runs") {
  CHECK(PlaceReader::job(5, {6}) == "control=5;arenas=6");
  CHECK(PlaceReader::job(5, {6, 7, 8, 12, 4, 3}) == "control=5;arenas=6-8,12,4,3");
}

TEST_CASE("variables that are set by halves are refused by name") {
  const Open open(2);
  const std::string job = job_of(open);
  says(refusal("0", "1", "0", "1", nullptr), "MESHWISE_JOB", "meshwise-run");
  says(refusal(nullptr, "1", "0", "1", job.c_str()), "MESHWISE_RANK", "none");
  says(refusal("0", nullptr, "0", "1", job.c_str()), "MESHWISE_SIZE", "none");
  says(refusal("0", "1", "0", nullptr, job.c_str()), "MESHWISE_LOCAL_SIZE", "none");
  says(refusal("1", nullptr, nullptr, nullptr, nullptr), "because MESHWISE_RANK is set", "none");
}

TEST_CASE("numbers that are none or out of range are refused by name and value") {
  const Open open(3);
  const std::string job = job_of(open);
  for (const char* const bad :
       {"", " 1", "1 ", "+1", "-1", "0x1", "1.0", "one", "2", "99999999999999999999", "4294967296", "1\n", "\x1b[2J"}) {
    says(refusal(bad, "2", "0", "2", job.c_str()), "MESHWISE_RANK:", "\"");
  }
  for (const char* const bad : {"", "0", "-2", "257", "18446744073709551618", "two"}) {
    says(refusal("0", bad, "0", "2", job.c_str()), "MESHWISE_SIZE:", bad);
  }
  says(refusal("0", "2", "2", "2", job.c_str()), "MESHWISE_LOCAL_RANK", "\"2\"");
  says(refusal("0", "2", "0", "3", job.c_str()), "MESHWISE_LOCAL_SIZE", "\"3\"");
  says(refusal("0", "2", "0", "1", job.c_str()), "MESHWISE_LOCAL_SIZE", "on this host");
  const std::string text = refusal("\x1b[31mred\n", "2", "0", "2", job.c_str());
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find('\n') == std::string::npos);
  CHECK(refusal(std::string(100'000, '7').c_str(), "2", "0", "2", job.c_str()).size() < 400);
}

TEST_CASE("descriptors that cannot be are refused") {
  const Open open(4);
  const auto number = [&](int k) { return std::to_string(open.numbers[static_cast<std::size_t>(k)]); };
  const auto job = [&](const std::string& text) { return refusal("1", "2", "1", "2", text.c_str()); };
  CHECK(job("control=" + number(0) + ";arenas=" + number(1) + "," + number(2)).empty());
  for (const char* const bad :
       {"", "5", "control", "control=5", "control=5;", "control=5;arena=6-7", "arenas=6-7;control=5",
        "control=;arenas=6-7", "control=x;arenas=6-7", "control=-1;arenas=6-7",
        "control=5;arenas=", "control=5;arenas=6-", "control=5;arenas=-7", "control=5;arenas=6,,7",
        "control=5;arenas=6 7", "control=99999999999;arenas=6-7"}) {
    says(job(bad), "MESHWISE_JOB", "leave it");
  }
  // too few, too many, backwards, and so many that they must not be made
  says(job("control=" + number(0) + ";arenas=" + number(1)), "arenas of 2 ranks", "found 1");
  says(job("control=" + number(0) + ";arenas=" + number(1) + "," + number(2) + "," + number(3)), "arenas of 2 ranks",
       "more");
  says(job("control=" + number(0) + ";arenas=8-7"), "2 ranks", "8-7");
  says(job("control=" + number(0) + ";arenas=0-1048576"), "2 ranks", "1048576");
  says(job("control=" + number(0) + ";arenas=" + number(1) + "," + number(1)), "once", number(1) + " twice");
  says(job("control=" + number(0) + ";arenas=" + number(1) + "," + number(0)), "once", number(0) + " twice");
  says(job("control=" + number(0) + ";arenas=" + number(1) + ",100000"), "100000", "rank 1");
}

TEST_CASE("the environment is where it is read") {
  for (const char* const name : PlaceVariables::names) unsetenv(name);
  CHECK(!place_from_environment());
  const Open open(2);
  const char* const values[] = {"0", "1", "0", "1"};
  for (int k = 0; k < 4; ++k) setenv(PlaceVariables::names[k], values[k], 1);
  CHECK_THROWS_AS(place_from_environment(), Error);
  setenv("MESHWISE_JOB", job_of(open).c_str(), 1);
  REQUIRE(place_from_environment());
  CHECK(place_from_environment()->arenas.size() == 1);
  for (const char* const name : PlaceVariables::names) unsetenv(name);
}
