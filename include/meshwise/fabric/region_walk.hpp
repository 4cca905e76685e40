// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>

#include "meshwise/collective/call.hpp"
#include "meshwise/core/split.hpp"

namespace meshwise::detail {

/// The part of a slot of `size` elements that a lane carries: lanes are cut at whole cache lines' worth of elements,
/// counted from the beginning of the block, hence at the same elements wherever the block lies.
constexpr Range lane_part(std::size_t size, std::size_t unit, int lane, int lanes) {
  if (lanes == 1) return Range{0, size};
  const std::size_t power = unit & (~unit + 1);  // the largest power of two that divides the element's size
  const std::size_t grain = power < 64 ? 64 / power : 1;
  const Range grains =
      split((size + grain - 1) / grain, static_cast<std::size_t>(lanes), static_cast<std::size_t>(lane));
  const std::size_t begin = grains.begin * grain < size ? grains.begin * grain : size;
  const std::size_t end = (grains.begin + grains.size) * grain;
  return Range{begin, (end < size ? end : size) - begin};
}

/// A walk through the bytes of a region, run by run.
struct RegionWalk {
  std::byte* at = nullptr;
  std::size_t run = 0;   ///< length of a run
  std::size_t skip = 0;  ///< from the end of a run to the next
  std::size_t left = 0;  ///< of the run at hand

  /// Bytes side by side.
  static RegionWalk stretch(std::byte* at, std::size_t bytes) { return RegionWalk{at, bytes, 0, bytes}; }

  /// Elements [part.begin, part.begin + part.size) of a region of `base`, of which there must be some.
  static RegionWalk along(std::byte* base, const Region& region, std::size_t unit, const Range& part) {
    const std::size_t bytes = part.size * unit;
    if (region.repeat == 1 || region.stride == region.run) {
      return RegionWalk{base + (region.offset + part.begin) * unit, bytes, 0, bytes};
    }
    const std::size_t into = part.begin % region.run;
    const std::size_t left = region.run - into;
    std::byte* const at = base + (region.offset + part.begin / region.run * region.stride + into) * unit;
    if (part.size <= left) return RegionWalk{at, bytes, 0, bytes};
    return RegionWalk{at, region.run * unit, (region.stride - region.run) * unit, left * unit};
  }

  /// Whether the next `bytes` bytes lie side by side.
  bool whole(std::size_t bytes) const { return left >= bytes; }

  /// Before a stretch rather than after the last one, which would leave the buffer.
  void enter_run() {
    if (left != 0) return;
    at += skip;
    left = run;
  }
  void advance(std::size_t bytes) {
    at += bytes;
    left -= bytes;
  }

  /// Copies `bytes` bytes from here to `packed`, or from there to here.
  void copy(std::byte* packed, std::size_t bytes, bool pack) const {
    RegionWalk walk = *this;
    while (bytes > 0) {
      walk.enter_run();
      const std::size_t stretch = walk.left < bytes ? walk.left : bytes;
      std::memcpy(pack ? packed : walk.at, pack ? walk.at : packed, stretch);
      walk.advance(stretch);
      packed += stretch;
      bytes -= stretch;
    }
  }
};

}  // namespace meshwise::detail
