// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/log.hpp"

#include <doctest/doctest.h>

#include <string>

#include "../support/standard_error.hpp"

using namespace meshwise;
using captured::written;
using detail::Log;

TEST_CASE("levels have names, and names have levels") {
  for (int k = 0; k < log_level_count; ++k) {
    const auto level = static_cast<LogLevel>(k);
    LogLevel found = LogLevel::off;
    CHECK(parse(log_level_name(level), found));
    CHECK(found == level);
  }
  LogLevel same = LogLevel::info;
  CHECK(!parse("", same));
  CHECK(!parse("Debug", same));
  CHECK(!parse("debug ", same));
  CHECK(same == LogLevel::info);
  CHECK(log_level_name(static_cast<LogLevel>(77)) == std::string("unknown"));
}

TEST_CASE("a log says what is as important as its level, and more so") {
  for (int chosen = 0; chosen < log_level_count; ++chosen) {
    const Log log(static_cast<LogLevel>(chosen), 3);
    for (int k = 0; k < log_level_count; ++k) {
      const auto level = static_cast<LogLevel>(k);
      const bool said = k > 0 && k <= chosen;
      CHECK(log.says(level) == said);
      CHECK(written([&] { log.write(level, "so it is"); }) ==
            (said ? "meshwise[rank 3] " + std::string(log_level_name(level)) + ": so it is\n" : ""));
    }
  }
  CHECK(written([] { Log().write(LogLevel::warning, "for all\n"); }) == "meshwise warning: for all\n");
  CHECK(written([] { Log(LogLevel::debug, 0).write(LogLevel::error, ""); }) == "meshwise[rank 0] error: \n");
}
