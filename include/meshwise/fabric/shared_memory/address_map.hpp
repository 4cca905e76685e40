// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace meshwise::detail {

/// What lies at a range of addresses of this process.
struct AddressRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::string access;  ///< "rw-p": readable, writable, not executable, private
  std::uint64_t offset = 0;
  std::uint64_t device = 0;
  std::uint64_t file = 0;
  std::string name;

  bool is_part_of(const struct stat& what, std::uint64_t at) const {
    return file == what.st_ino && device == what.st_dev && offset == at;
  }
};

/// The parts of [begin, end) at which something lies, cut off at its ends, in order. text: of /proc/self/maps, whose
/// lines are "BEGIN-END ACCESS OFFSET MAJOR:MINOR FILE NAME".
inline std::vector<AddressRange> address_ranges(const std::string& text, std::uint64_t begin, std::uint64_t end) {
  std::vector<AddressRange> ranges;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t stop = text.find('\n', at);
    if (stop == std::string::npos) stop = text.size();
    const std::string entry = text.substr(at, stop - at);
    at = stop + 1;
    AddressRange range;
    char* rest = nullptr;
    const auto number = [&rest](const char* from, int base) {
      return static_cast<std::uint64_t>(std::strtoull(from, &rest, base));
    };
    range.begin = number(entry.c_str(), 16);
    if (*rest != '-') continue;
    range.end = number(rest + 1, 16);
    if (*rest != ' ' || range.end <= begin || range.begin >= end) continue;
    const auto blank = static_cast<std::size_t>(rest - entry.c_str());
    if (entry.size() < blank + 6) continue;
    range.access = entry.substr(blank + 1, 4);
    range.offset = number(rest + 5, 16);
    const std::uint64_t major_number = number(rest, 16);
    if (*rest != ':') continue;
    const std::uint64_t minor_number = number(rest + 1, 16);
    range.device = makedev(static_cast<unsigned>(major_number), static_cast<unsigned>(minor_number));
    range.file = number(rest, 10);
    while (*rest == ' ') ++rest;
    range.name = rest;
    if (range.begin < begin) {
      range.offset += begin - range.begin;
      range.begin = begin;
    }
    if (range.end > end) range.end = end;
    ranges.push_back(range);
  }
  return ranges;
}

}  // namespace meshwise::detail
