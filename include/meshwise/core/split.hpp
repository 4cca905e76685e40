// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace meshwise {

/// A half-open run of indices.
struct Range {
  std::size_t begin = 0;
  std::size_t size = 0;

  constexpr std::size_t end() const { return begin + size; }
  friend constexpr bool operator==(const Range&, const Range&) = default;
};

/// Where part k of n begins among `count` elements: floor(k * count / n), without overflow for any 64-bit count.
constexpr std::size_t split_begin(std::size_t count, std::size_t parts, std::size_t k) {
  const std::size_t rest = count % parts;
  return count / parts * k + (rest == 0 ? 0 : rest * k / parts);  // divisions are slow
}

/// Part k of n of `count` elements: the one split rule of contiguous shards and blocks.
///
/// count: elements; parts: at least 1; k in [0, parts). The parts are in order, disjoint, cover everything, differ by
/// at most one, and are empty only when count < parts. Cutting part k again by m is cutting the whole by n * m.
constexpr Range split(std::size_t count, std::size_t parts, std::size_t k) {
  const std::size_t begin = split_begin(count, parts, k);
  return {begin, split_begin(count, parts, k + 1) - begin};
}

}  // namespace meshwise
