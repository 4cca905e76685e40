// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "meshwise/core/error.hpp"

namespace meshwise::detail {

/// A Report in one block without pointers, as other processes can read it. What is longer than its place is cut off,
/// with "..." at the end. Bytes from outside: whatever is in it, `unpack` gives a Report.
struct PackedReport {
  static constexpr int most_ranks = 64;

  std::uint8_t code = 0;
  std::int32_t rank = -1;
  std::uint64_t sequence = 0;
  std::int32_t rank_count = 0;
  std::int32_t ranks[most_ranks] = {};
  char operation[96] = {};
  char origin[192] = {};
  char expected[512] = {};
  char found[1024] = {};
  char remedy[512] = {};
  char axis[64] = {};

  /// Never throws.
  void pack(const Report& report) noexcept {
    code = static_cast<std::uint8_t>(report.code);
    rank = report.rank;
    sequence = report.sequence;
    rank_count = 0;
    for (const int one : report.ranks) {
      if (rank_count == most_ranks) break;
      ranks[rank_count++] = one;
    }
    put(operation, report.operation);
    put(origin, report.origin);
    put(expected, report.expected);
    put(found, report.found);
    put(remedy, report.remedy);
    put(axis, report.axis);
  }

  Report unpack() const {
    Report report;
    report.code = code <= static_cast<std::uint8_t>(Code::out_of_memory) ? static_cast<Code>(code) : Code::aborted;
    report.rank = rank;
    report.sequence = sequence;
    const int count = rank_count < 0 ? 0 : rank_count > most_ranks ? most_ranks : rank_count;
    report.ranks.assign(ranks, ranks + count);
    report.operation = text(operation);
    report.origin = text(origin);
    report.expected = text(expected);
    report.found = text(found);
    report.remedy = text(remedy);
    report.axis = text(axis);
    return report;
  }

 private:
  template <std::size_t room>
  static void put(char (&to)[room], const std::string& from) noexcept {
    const bool cut = from.size() >= room;
    const std::size_t bytes = cut ? room - 4 : from.size();
    std::memcpy(to, from.data(), bytes);
    if (cut) std::memcpy(to + bytes, "...", 3);
    to[cut ? bytes + 3 : bytes] = 0;
  }

  template <std::size_t room>
  static std::string text(const char (&from)[room]) {
    return std::string(from, strnlen(from, room));
  }
};

}  // namespace meshwise::detail
