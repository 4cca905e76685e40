// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/memory/poison.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

using namespace meshwise;

TEST_CASE("the first report stays") {
  detail::Poison poison;
  CHECK(!poison.set());
  Report report;
  report.code = Code::timed_out;
  report.found = "first";
  poison.put(report);
  CHECK(poison.set());
  CHECK(poison.set_in_order());
  report.code = Code::aborted;
  report.found = "second";
  poison.put(report);
  CHECK(poison.cause().found == "first");
  CHECK(poison.cause().code == Code::timed_out);
}

TEST_CASE("many threads agree on the cause") {
  detail::Poison poison;
  std::vector<std::string> seen(4);
  std::vector<std::thread> threads;
  for (std::size_t k = 0; k < seen.size(); ++k) {
    threads.emplace_back([&poison, &seen, k] {
      Report report;
      report.found = std::to_string(k);
      poison.put(report);
      seen[k] = poison.cause().found;
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& text : seen) CHECK(text == seen[0]);
}
