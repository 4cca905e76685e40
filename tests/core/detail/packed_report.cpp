// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/detail/packed_report.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

using namespace meshwise;
using detail::PackedReport;

TEST_CASE("a report comes out as it went in") {
  Report report;
  report.code = Code::timed_out;
  report.operation = "all_reduce";
  report.origin = "barrier on rank 1";
  report.expected = "all";
  report.found = "none";
  report.remedy = "look";
  report.axis = "tp";
  report.rank = 3;
  report.ranks = {1, 0, 7};
  report.sequence = 12;
  PackedReport packed;
  packed.pack(report);
  const Report same = packed.unpack();
  CHECK(std::string(Error(same).what()) == Error(report).what());
  CHECK(same.code == report.code);
  CHECK(same.ranks == report.ranks);
  CHECK(same.rank == 3);
  packed.pack(Report{});
  CHECK(packed.unpack().found.empty());
  CHECK(packed.unpack().ranks.empty());
}

TEST_CASE("what is too long is cut off, and says so") {
  Report report;
  for (const std::size_t length : {1022U, 1023U, 1024U, 5000U}) {
    report.found = std::string(length, 'x');
    report.ranks = std::vector<int>(100, 4);
    PackedReport packed;
    packed.pack(report);
    const Report cut = packed.unpack();
    if (length <= 1023) {
      CHECK(cut.found == report.found);
    } else {
      CHECK(cut.found == std::string(1020, 'x') + "...");
    }
    CHECK(cut.ranks.size() == PackedReport::most_ranks);
  }
}

TEST_CASE("whatever bytes there are give a report") {
  PackedReport packed;
  std::memset(static_cast<void*>(&packed), 0xff, sizeof(packed));
  const Report report = packed.unpack();
  CHECK(report.code == Code::aborted);
  CHECK(report.ranks.empty());
  CHECK(report.found.size() == sizeof(packed.found));
  packed.rank_count = 1 << 30;
  CHECK(packed.unpack().ranks.size() == PackedReport::most_ranks);
}
