// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "meshwise/core/error.hpp"
#include "meshwise/core/positions.hpp"
#include "meshwise/core/split.hpp"
#include "meshwise/layout/layout_value.hpp"
#include "meshwise/layout/plan_volume.hpp"
#include "meshwise/mesh/detail/state.hpp"
#include "meshwise/tensor/extent.hpp"

namespace meshwise::detail {

static_assert(GridView::most_axes >= LayoutValue::most_axes);

/// Where a rank stands in a mesh, and how large that is, by the axes of a layout value.
struct Seat {
  std::array<int, LayoutValue::most_axes> size{};
  std::array<int, LayoutValue::most_axes> coordinate{};

  Seat() = default;
  explicit Seat(const GridView& view) {
    for (int i = 0; i < view.axes; ++i) {
      size[static_cast<std::size_t>(i)] = view.size(i);
      coordinate[static_cast<std::size_t>(i)] = view.coordinate(i);
    }
  }
  std::size_t parts(int axis) const { return static_cast<std::size_t>(size[static_cast<std::size_t>(axis)]); }
  std::size_t part(int axis) const { return static_cast<std::size_t>(coordinate[static_cast<std::size_t>(axis)]); }
};

/// Cuts what a dim's major axes have left by the next rule. cut(rule, parts, part): for each run of contiguous axes,
/// which cut together, and for each axis of another rule. entries: as many of the dim's axes.
template <class F>
void each_cut(const LayoutValue& layout, int d, int entries, const Seat& seat, const F& cut) {
  const std::int8_t* const order = layout.order[d];
  for (int i = 0; i < entries;) {
    const SplitRule rule = layout.rule[order[i]];
    std::size_t parts = seat.parts(order[i]), part = seat.part(order[i]);
    for (++i; rule == SplitRule::contiguous && i < entries && layout.rule[order[i]] == rule; ++i) {
      part = part * seat.parts(order[i]) + seat.part(order[i]);
      parts *= seat.parts(order[i]);
    }
    cut(rule, parts, part);
  }
}

/// The indices of dim d that the rank on a seat holds.
inline Positions positions_of(const LayoutValue& layout, int d, const Extent& extent, const Seat& seat) {
  const auto axes = static_cast<std::size_t>(layout.axes);
  return held_positions(layout, d, extent, {seat.size.data(), axes}, {seat.coordinate.data(), axes}, extent.counts());
}

/// How many these are, and where they begin if they are a range, without listing them. entries: of the major axes only.
inline Range range_of(const LayoutValue& layout, int d, int entries, const Extent& extent, const Seat& seat) {
  Range held{0, extent};
  each_cut(layout, d, entries, seat, [&](SplitRule rule, std::size_t parts, std::size_t part) {
    Range cut;
    switch (rule) {
      case SplitRule::contiguous: cut = split(held.size, parts, part); break;
      case SplitRule::chunked: cut = chunk(held.size, parts, part); break;
      case SplitRule::zigzag:
        cut.size = split(held.size, 2 * parts, part).size + split(held.size, 2 * parts, 2 * parts - 1 - part).size;
        break;
      case SplitRule::striped: cut.size = part < held.size ? (held.size - part - 1) / parts + 1 : 0; break;
      case SplitRule::counted:
        for (std::size_t i = 0; i < part; ++i) cut.begin += extent.counts()[i];
        cut.size = extent.counts()[part];
        break;
    }
    held = {held.begin + cut.begin, cut.size};
  });
  return held;
}

/// Whether a rank's indices of a dim always follow each other.
constexpr bool is_contiguous(const LayoutValue& layout, int d) {
  for (int i = 0; i < layout.split[d]; ++i) {
    const SplitRule rule = layout.rule[layout.order[d][i]];
    if (rule == SplitRule::zigzag || rule == SplitRule::striped) return false;
  }
  return true;
}

[[noreturn]] inline void refuse_counts(const char* verb, const GridView& view, int axis, const Extent& extent) {
  const std::string& name = view.axis(axis).name;
  fail(verb, std::to_string(view.size(axis)) + " counts, one for each part of the dim that Counted<" + name + "> cuts",
       extent.counted() ? std::to_string(extent.counts().size()) : "an extent without counts",
       "give this dim the extent Extent::of_parts(counts), or pass the counts to convert", view.state->world->rank());
}

[[noreturn]] inline void refuse_moved_from(const GridView& view) {
  fail("Tensor", "a tensor that holds elements", "one that was moved from", "assign to it before it is used again",
       view.state->world->rank());
}

/// What this rank holds of a dim. Checks the counts of one that is Counted, and drops those of others.
inline Range hold(const GridView& view, const LayoutValue& layout, int d, Extent& extent) {
  if (is_counted(layout, d)) {
    const int axis = layout.order[d][0];
    if (extent.counts().size() != static_cast<std::size_t>(view.size(axis))) {
      refuse_counts("Tensor", view, axis, extent);
    }
  } else {
    extent.drop_counts();
  }
  return range_of(layout, d, layout.split[d], extent, Seat(view));
}
/// The same where one axis cuts it contiguously, or none.
inline Range hold_part(const GridView& view, int axis, Extent& extent) {
  extent.drop_counts();
  const MeshAxis& cut = view.axis(axis);
  return split(extent, static_cast<std::size_t>(cut.size), static_cast<std::size_t>(cut.coordinate));
}
inline Range hold_whole(Extent& extent) {
  extent.drop_counts();
  return {0, extent};
}

}  // namespace meshwise::detail
