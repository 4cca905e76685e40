// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "meshwise/core/detail/list.hpp"
#include "meshwise/core/detail/sorted.hpp"
#include "meshwise/core/positions.hpp"

namespace meshwise::detail {

/// The keys of a piece that a query sees, by their numbers in the piece.
struct KeySpan {
  std::size_t begin = 0, end = 0;
};

/// How many of an ascending list of indices lie below one.
constexpr std::size_t count_below(const Positions& all, std::size_t index) {
  std::size_t count = 0;
  for (const Progression& p : all.progressions()) {
    if (index <= p.begin) break;
    count += index > p.last() ? p.count : (index - p.begin - 1) / p.step + 1;
  }
  return count;
}

template <class Mask>
List<KeySpan> spans_of(const Positions& queries, const Positions& keys, const Mask& mask) {
  List<KeySpan> spans(queries.size());
  std::size_t row = 0;
  for (const Progression& p : queries.progressions()) {
    for (std::size_t i = 0; i < p.count; ++i) {
      const Range seen = mask(p.at(i));
      const std::size_t most = ~std::size_t{0};
      const std::size_t end = seen.size > most - seen.begin ? most : seen.begin + seen.size;
      spans[row++] = {count_below(keys, seen.begin), count_below(keys, end)};
    }
  }
  return spans;
}

/// Some queries beside some keys, among them all pairs of those that see each other: a matrix product's worth.
struct AttentionTile {
  static constexpr std::size_t most_rows = 128, most_keys = 512;

  std::size_t row, rows;  // the queries
  std::size_t base, end;  // the keys that are widened together
  std::size_t key, keys;  // those of them that these queries see
};

/// The tiles in which somebody sees something, by keys and then by queries: what is masked as a whole is skipped.
inline List<AttentionTile> tiles_of(const List<KeySpan>& spans, std::size_t keys) {
  List<AttentionTile> tiles;
  for (std::size_t base = 0; base < keys; base += AttentionTile::most_keys) {
    const std::size_t end = smaller(keys, base + AttentionTile::most_keys);
    for (std::size_t row = 0; row < spans.size(); row += AttentionTile::most_rows) {
      std::size_t first = spans.size(), last = 0, begin = end, seen = base;
      for (std::size_t i = row; i < smaller(spans.size(), row + AttentionTile::most_rows); ++i) {
        const std::size_t from = larger(spans[i].begin, base), to = smaller(spans[i].end, end);
        if (from >= to) continue;
        first = smaller(first, i);
        last = i + 1;
        begin = smaller(begin, from);
        seen = larger(seen, to);
      }
      if (first < last) tiles.push_back({first, last - first, base, end, begin, seen - begin});
    }
  }
  return tiles;
}

}  // namespace meshwise::detail
