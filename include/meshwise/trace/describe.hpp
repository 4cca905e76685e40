// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "meshwise/trace/ledger.hpp"

namespace meshwise {

namespace detail {

/// A table in text: the first column to the left, the others to the right.
inline std::string text_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    if (widths.size() < row.size()) widths.resize(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = widths[i] < row[i].size() ? row[i].size() : widths[i];
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - row[i].size(), ' ');
      text += i == 0 ? row[i] + space : "  " + space + row[i];
    }
    text += '\n';
  }
  return text;
}

}  // namespace detail

/// A ledger as two tables in text: traffic, in a row for each axis and for each set of axes with conversions over all
/// of them at once; memory, in a row for each category that was ever used. Bytes are summed over the ranks, except
/// where a column says "of one rank": the largest.
inline std::string describe(const Ledger& ledger) {
  const auto text = [](std::uint64_t number) { return std::to_string(number); };
  std::vector<std::vector<std::string>> rows{{"axis", "ranks", "calls", "messages", "volume", "moved"}};
  for (const auto* const entries : {&ledger.axes, &ledger.groups}) {
    for (const Ledger::AxisEntry& entry : *entries) {
      const Traffic& traffic = entry.traffic;
      rows.push_back({entry.name, std::to_string(entry.ranks), text(traffic.calls), text(traffic.messages),
                      text(traffic.volume), text(traffic.moved)});
    }
  }
  std::vector<std::vector<std::string>> memory{{"memory", "bytes", "of one rank", "peak", "of one rank"}};
  for (const Ledger::MemoryEntry& entry : ledger.memory) {
    if (entry.peak == 0) continue;
    memory.push_back({category_name(entry.category), text(entry.current), text(entry.largest), text(entry.peak),
                      text(entry.largest_peak)});
  }
  return detail::text_table(rows) + (memory.size() > 1 ? "\n" + detail::text_table(memory) : "");
}

}  // namespace meshwise
