// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/detail/attention_tiles.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "../../support/sanitized.hpp"
#include "meshwise/core/random.hpp"
#include "meshwise/tensor/attention_mask.hpp"

namespace meshwise::detail {
namespace {

TEST_CASE("how many indices lie below one, by counting") {
  const Positions all = Range{3, 20};
  for (const Positions& held : {Positions(Range{0, 0}), all, zigzag_part(all, 3, 1), stripe_part(all, 4, 2),
                                stripe_part(zigzag_part(all, 2, 0), 3, 1)}) {
    for (std::size_t index = 0; index < 30; ++index) {
      std::size_t count = 0;
      for (std::size_t i = 0; i < held.size(); ++i) count += held.at(i) < index ? 1U : 0U;
      CHECK(count_below(held, index) == count);
    }
    CHECK(count_below(held, ~std::size_t{0}) == held.size());
  }
}

// Whether query and key see each other, for all pairs of a piece.
template <class Mask>
std::vector<bool> pairs(const Positions& queries, const Positions& keys, const Mask& mask) {
  std::vector<bool> result;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    for (std::size_t j = 0; j < keys.size(); ++j) {
      const Range seen = mask(queries.at(i));
      result.push_back(keys.at(j) >= seen.begin && keys.at(j) - seen.begin < seen.size);
    }
  }
  return result;
}

template <class Mask>
void check_tiles(const Positions& queries, const Positions& keys, const Mask& mask) {
  const List<KeySpan> spans = spans_of(queries, keys, mask);
  const std::vector<bool> expected = pairs(queries, keys, mask);
  REQUIRE(spans.size() == queries.size());
  bool right = true;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    for (std::size_t j = 0; j < keys.size(); ++j) {
      right = right && expected[i * keys.size() + j] == (spans[i].begin <= j && j < spans[i].end);
    }
  }
  CHECK(right);
  // Every pair lies in exactly one tile, and no tile is without a pair in its first and last row and column.
  std::vector<int> covered(expected.size());
  bool ordered = true, tight = true;
  std::size_t base = 0;
  for (const AttentionTile& t : tiles_of(spans, keys.size())) {
    ordered = ordered && base <= t.base && t.base <= t.key && t.key + t.keys <= t.end && t.end <= keys.size();
    ordered = ordered && t.rows <= AttentionTile::most_rows && t.end - t.base <= AttentionTile::most_keys;
    base = t.base;
    bool edges[4] = {};
    for (std::size_t i = t.row; i < t.row + t.rows; ++i) {
      for (std::size_t j = t.key; j < t.key + t.keys; ++j) {
        ++covered[i * keys.size() + j];
        if (!expected[i * keys.size() + j]) continue;
        edges[0] = edges[0] || i == t.row;
        edges[1] = edges[1] || i + 1 == t.row + t.rows;
        edges[2] = edges[2] || j == t.key;
        edges[3] = edges[3] || j + 1 == t.key + t.keys;
      }
    }
    for (const bool edge : edges) tight = tight && edge;
  }
  CHECK(ordered);
  CHECK(tight);
  bool once = true;
  for (std::size_t i = 0; i < expected.size(); ++i) once = once && covered[i] <= 1 && (!expected[i] || covered[i] == 1);
  CHECK(once);
}

TEST_CASE("tiles hold every pair that is not masked once, and skip what is masked as a whole") {
  const auto any = [](std::size_t q) { return Range{random_bits(1, q) % 900, random_bits(2, q) % 700}; };
  for (const std::size_t length : {0U, 1U, 127U, 128U, 129U, 513U, building::sanitized ? 700U : 1300U}) {
    const Positions all = Range{0, length};
    const Positions front = all.slice(0, length / 2), back = all.slice(length / 2, length - length / 2);
    const Positions zigzag = zigzag_part(all, 2, 1), striped = stripe_part(all, 3, 2);
    for (const Positions& keys : {all, back, zigzag, striped}) {
      check_tiles(front, keys, CausalMask{});
      check_tiles(zigzag, keys, CausalMask{});
      check_tiles(striped, keys, WindowMask{200});
      check_tiles(all, keys, any);
    }
    check_tiles(all, all, NoMask{});
    CHECK(tiles_of(spans_of(front, back, CausalMask{}), back.size()).empty());
    CHECK(tiles_of(spans_of(all, all, WindowMask{0}), all.size()).empty());
  }
}

}  // namespace
}  // namespace meshwise::detail
