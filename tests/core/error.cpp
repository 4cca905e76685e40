// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/error.hpp"

#include <doctest/doctest.h>

#include <string>

namespace {

using namespace meshwise;

TEST_CASE("the text names the function, where, both values and the remedy") {
  Report report;
  report.code = Code::mismatch;
  report.operation = "all_reduce";
  report.expected = "8 elements";
  report.found = "9 elements";
  report.remedy = "give all ranks the same extents";
  report.axis = "tp";
  report.rank = 3;
  report.sequence = 12;
  const Error error(report);
  CHECK(
      std::string(error.what()) ==
      "all_reduce (rank 3, axis tp, call 12): expected 8 elements, found 9 elements; give all ranks the same extents");
  CHECK(error.code() == Code::mismatch);
  CHECK(error.report().rank == 3);
}

TEST_CASE("fields that do not apply leave no trace") {
  Report report;
  CHECK(std::string(Error(report).what()) == "meshwise: ");
  report.found = "rank 2 has left";
  CHECK(std::string(Error(report).what()) == "meshwise: rank 2 has left");
  report.axis = "dp";
  CHECK(std::string(Error(report).what()) == "meshwise (axis dp): rank 2 has left");
  report.axis.clear();
  report.operation = "split";
  report.rank = 0;
  CHECK(std::string(Error(report).what()) == "split (rank 0): rank 2 has left");
}

TEST_CASE("fail throws an Error for bad arguments, which copies with its report") {
  std::string text;
  try {
    fail("launch", "1 to 4096 ranks", "0", "choose another number of ranks");
  } catch (const std::exception& error) {
    text = error.what();
  }
  CHECK(text == "launch: expected 1 to 4096 ranks, found 0; choose another number of ranks");

  try {
    fail("split", "a", "b", "c", 5);
  } catch (const Error& error) {
    const Error copy = error;
    CHECK(copy.code() == Code::invalid_argument);
    CHECK(copy.report().operation == "split");
    CHECK(copy.report().rank == 5);
    CHECK(std::string(copy.what()) == error.what());
  }
}

}  // namespace
