// SPDX-License-Identifier: Apache-2.0
// From what meshwise-tune has measured to the rules of a table.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "job.hpp"
#include "meshwise/fabric/tuning/selection_file.hpp"

namespace tune {

/// One rule for each row of neighbouring sizes at which the same was best. Sizes that grow by 4 stand for what is a
/// factor of 2 around them; the first and the last one for all beyond.
inline std::vector<meshwise::SelectionFile::Entry> rules_of(const std::vector<Point>& points) {
  std::vector<meshwise::SelectionFile::Entry> entries;
  const auto row = [](const Point& a, const Point& b) {
    return a.fabric == b.fabric && a.ranks == b.ranks && a.way == b.way && a.operation == b.operation;
  };
  for (std::size_t first = 0; first < points.size();) {
    const Point& one = points[first];
    const auto same = [&](const Point& other) {
      return row(one, other) && one.result.algorithm == other.result.algorithm &&
             one.result.lanes == other.result.lanes;
    };
    std::size_t last = first;
    double least = 1e300, most = 0;
    for (; last < points.size() && same(points[last]); ++last) {
      const double gain = points[last].result.automatic / std::max(points[last].result.seconds, 1e-12);
      least = std::min(least, gain);
      most = std::max(most, gain);
    }
    meshwise::SelectionFile::Entry entry;
    entry.fabric = one.fabric;
    entry.rule.operation = one.operation;
    entry.rule.way = one.way;
    entry.rule.ranks = one.ranks;
    entry.rule.algorithm = one.result.algorithm;
    entry.rule.lanes = one.result.lanes;
    const bool begins = first == 0 || !row(points[first - 1], one);
    const bool ends = last == points.size() || !row(one, points[last]);
    entry.rule.from = begins ? 0 : one.bytes / 2;
    entry.rule.to = ends ? meshwise::SelectionTable::no_end : points[last].bytes / 2;
    if (entry.rule.decides()) {
      char text[80];
      std::snprintf(text, sizeof(text), "%.2f to %.2f times as fast as automatic", least, most);
      entry.comment = text;
    }
    entries.push_back(entry);
    first = last;
  }
  return entries;
}

}  // namespace tune
