// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include "meshwise/collective/call.hpp"
#include "meshwise/core/positions.hpp"
#include "meshwise/layout/layout_value.hpp"

namespace meshwise::detail {

/// Goes through a list of indices, again and again.
class PositionCursor {
 public:
  PositionCursor() = default;
  explicit PositionCursor(const Positions& all) : all_(all.progressions()) {}

  std::size_t value() const { return all_[piece_].at(i_); }
  /// False if it begins again.
  bool next() {
    if (++i_ < all_[piece_].count) return true;
    i_ = 0;
    if (++piece_ < all_.size()) return true;
    piece_ = 0;
    return false;
  }

 private:
  View<Progression> all_;
  std::size_t piece_ = 0;
  std::size_t i_ = 0;
};

/// Calls f(row-major position of the first, number among those that are picked, length) for the runs in a dense array
/// that are picked by the indices of each dim. shape: of the array.
template <class F>
void each_run(std::span<const std::size_t> shape, View<Positions> picked, const F& f) {
  for (const Positions& p : picked) {
    if (p.empty()) return;
  }
  std::size_t run = 1;  // of the dims that are picked entirely
  std::size_t whole = shape.size();
  while (whole > 0 && picked[whole - 1].size() == shape[whole - 1]) run *= shape[--whole];
  if (whole == 0) {
    f(std::size_t{0}, std::size_t{0}, run);
    return;
  }
  const std::size_t cut = whole - 1;
  std::array<PositionCursor, LayoutValue::most_dims> outer;
  for (std::size_t i = 0; i < cut; ++i) outer[i] = PositionCursor(picked[i]);
  for (std::size_t number = 0;;) {
    std::size_t before = 0;
    for (std::size_t i = 0; i < cut; ++i) before = before * shape[i] + outer[i].value();
    for (const Progression& p : picked[cut].progressions()) {
      const std::size_t together = p.step == 1 ? p.count : 1;
      for (std::size_t i = 0; i < p.count; i += together) {
        f((before * shape[cut] + p.at(i)) * run, number, together * run);
        number += together * run;
      }
    }
    std::size_t i = cut;
    for (bool carry = true; carry;) {
      if (i == 0) return;
      carry = !outer[--i].next();
    }
  }
}

inline std::size_t picked_size(View<Positions> picked) {
  std::size_t n = 1;
  for (const Positions& p : picked) n *= p.size();
  return n;
}

/// A region, or none.
struct MaybeRegion {
  Region region{};
  bool found = false;

  MaybeRegion() = default;
  MaybeRegion(const Region& one) : region(one), found(true) {}  // NOLINT: a region is one that was found
  explicit operator bool() const { return found; }
  const Region& operator*() const { return region; }
  const Region* operator->() const { return &region; }
};

/// The picked elements as a region, if they are one: two loops, of which the inner one is dense.
inline MaybeRegion region_of(std::span<const std::size_t> shape, View<Positions> picked) {
  const std::size_t size = picked_size(picked);
  if (size == 0) return Region{0, 0, 0, 1};
  struct Loop {
    std::size_t count, stride;
  };
  std::array<Loop, LayoutValue::most_dims> loops{};  // innermost first
  std::size_t number = 0, offset = 0, inside = 1;
  for (std::size_t i = shape.size(); i-- > 0; inside *= shape[i]) {
    if (picked[i].progressions().size() != 1) return {};
    const Progression& p = picked[i].progressions()[0];
    offset += p.begin * inside;
    if (p.count == 1) continue;
    const std::size_t stride = p.step * inside;
    if (number != 0 && stride == loops[number - 1].count * loops[number - 1].stride) {
      loops[number - 1].count *= p.count;
    } else {
      loops[number++] = {p.count, stride};
    }
  }
  if (number == 0) return Region{offset, 1, 1, 1};
  if (loops[0].stride != 1) {
    if (number > 1) return {};
    return Region{offset, 1, loops[0].stride, loops[0].count};
  }
  if (number == 1) return Region{offset, loops[0].count, loops[0].count, 1};
  if (number == 2) return Region{offset, loops[0].count, loops[1].stride, loops[1].count};
  return {};
}

/// Copies what is picked out of a dense array into a dense piece, or back. element: bytes of one.
inline void copy_picked(std::span<const std::size_t> shape, View<Positions> picked, std::size_t element,
                        const std::byte* array, std::byte* piece) {
  each_run(shape, picked, [&](std::size_t at, std::size_t number, std::size_t run) {
    std::memcpy(piece + number * element, array + at * element, run * element);
  });
}
inline void copy_back(std::span<const std::size_t> shape, View<Positions> picked, std::size_t element,
                      const std::byte* piece, std::byte* array) {
  each_run(shape, picked, [&](std::size_t at, std::size_t number, std::size_t run) {
    std::memcpy(array + at * element, piece + number * element, run * element);
  });
}

}  // namespace meshwise::detail
