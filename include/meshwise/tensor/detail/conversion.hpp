// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "meshwise/collective/call.hpp"
#include "meshwise/core/detail/mix.hpp"
#include "meshwise/core/element.hpp"
#include "meshwise/core/reduction_kind.hpp"
#include "meshwise/layout/layout_plan.hpp"
#include "meshwise/mesh/detail/state.hpp"
#include "meshwise/tensor/detail/blocks.hpp"
#include "meshwise/tensor/detail/held.hpp"
#include "meshwise/tensor/extent.hpp"

namespace meshwise::detail {

struct ElementType {
  ElementKind kind = ElementKind::u8;
  std::size_t size = 1;
};

/// What a conversion needs to know of the reductions that are carried out and that will be owed; a layout owes one.
struct Reductions {
  ReductionKind kind = ReductionKind::none;
  bool commutative = true;
  Reduce (*kernel)() = nullptr;                           ///< of what is owed before
  void (*fill)(std::byte* out, std::size_t n) = nullptr;  ///< writes n times the identity of what is owed afterwards
};

/// A change of layout without its types: what the types say.
struct ConversionKind {
  const LayoutPlan& plan;
  ElementType element = {};
  Reductions reductions = {};
  std::uint64_t signature = 0;                   ///< of the layouts at both ends
  bool counted = false;                          ///< whether a dim is Counted in one of them
  std::vector<std::string> (*dims)() = nullptr;  ///< what the dims are called
};

/// And what it is applied to.
struct Conversion {
  const ConversionKind& kind;
  const GridView& view;
  const Extent* before;  ///< global extents, with the counts of dims that are Counted before
  const Extent* after;   ///< the same with those after

  /// The extent of a dim with the counts by which a layout on the way cuts it.
  const Extent& extent(const LayoutValue& layout, int d) const {
    return !is_counted(layout, d) || counted_alike(layout, kind.plan.from, d) ? before[d] : after[d];
  }
};

/// What a rank holds of every dim; where a dim is not contiguous only the sizes mean something.
using LocalShape = std::array<Range, LayoutValue::most_dims>;

/// Those of a dim in a layout.
inline std::size_t local_size(const Conversion& conversion, const LayoutValue& layout, int d, const Seat& seat) {
  const Extent& extent = conversion.extent(layout, d);
  if (layout.split[d] == 0) return extent;
  const int axis = layout.order[d][0];
  if (layout.split[d] == 1 && layout.rule[axis] == SplitRule::contiguous) {
    return split(extent, seat.parts(axis), seat.part(axis)).size;
  }
  return range_of(layout, d, layout.split[d], extent, seat).size;
}

/// The axes of a set, in the order in which their coordinates number the ranks of its group: that of the mesh.
struct GroupAxes {
  std::array<int, LayoutValue::most_axes> axis{};
  int count = 0;

  GroupAxes(const GridView& view, unsigned set) {
    for (int a = 0; a < view.axes; ++a) {
      if ((set >> a & 1u) != 0) axis[static_cast<std::size_t>(count++)] = a;
    }
  }
};

/// The parts of dim d that the ranks of a group have: the axes of the set cut it in the layout's order.
inline PartOrder order_of_parts(const LayoutValue& layout, int d, unsigned set, const GridView& view,
                                const Seat& seat) {
  std::array<std::size_t, LayoutValue::most_axes> weight{};
  std::size_t product = 1;
  for (int i = layout.split[d]; i-- > 0;) {
    const int axis = layout.order[d][i];
    if ((set >> axis & 1u) == 0) continue;
    weight[static_cast<std::size_t>(axis)] = product;
    product *= seat.parts(axis);
  }
  const GroupAxes group(view, set);
  PartOrder order;
  for (int i = 0; i < group.count; ++i) {
    const int axis = group.axis[static_cast<std::size_t>(i)];
    const auto at = static_cast<std::size_t>(order.axes++);
    order.size[at] = seat.parts(axis);
    order.weight[at] = weight[static_cast<std::size_t>(axis)];
  }
  return order;
}

/// How the axes of a set, contiguous and at the minor end of dim d, cut what the other axes leave.
inline Cut cut_among_others(const Conversion& c, const LayoutValue& layout, int d, unsigned set) {
  const std::int8_t* const order = layout.order[d];
  int begin = layout.split[d];
  std::size_t parts = 1, first = 0;
  while (begin > 0 && layout.rule[order[begin - 1]] == SplitRule::contiguous) {
    const MeshAxis& axis = c.view.axis(order[--begin]);
    if ((set >> order[begin] & 1u) == 0) first += static_cast<std::size_t>(axis.coordinate) * parts;
    parts *= static_cast<std::size_t>(axis.size);
  }
  if (begin == 0) return {c.before[d], parts, first};
  return {range_of(layout, d, begin, c.extent(layout, d), Seat(c.view)).size, parts, first};
}
inline Cut cut_of(const Conversion& c, const LayoutValue& layout, int d, unsigned set) {
  if (layout.split[d] != 1) return cut_among_others(c, layout, d, set);
  return {c.before[d], static_cast<std::size_t>(c.view.size(layout.order[d][0])), 0};
}

constexpr std::uint64_t hash_of(std::uint64_t hash, const LayoutValue& layout) {
  for (int d = 0; d < layout.dims; ++d) {
    hash = mix(hash, static_cast<std::uint64_t>(layout.split[d]));
    for (int i = 0; i < layout.split[d]; ++i) {
      const int axis = layout.order[d][i];
      hash = mix(hash, static_cast<std::uint64_t>(axis) << 8 | static_cast<std::uint64_t>(layout.rule[axis]));
    }
  }
  for (int a = 0; a < layout.axes; ++a) {
    hash = mix(hash, static_cast<std::uint64_t>(layout.kind[a]) << 8 | static_cast<std::uint64_t>(layout.op[a]));
  }
  return hash;
}

inline std::uint64_t hash_of_counts(const Conversion& conversion, std::uint64_t hash) {
  for (int d = 0; d < conversion.kind.plan.from.dims; ++d) {
    for (const Extent* extent : {conversion.before + d, conversion.after + d}) {
      for (const std::size_t n : extent->counts()) hash = mix(hash, n);
    }
  }
  return hash;
}
/// A hash of what all ranks of a step must agree on besides the number of elements.
inline std::uint64_t signature_of(const Conversion& conversion, std::uint64_t step) {
  std::uint64_t hash = conversion.kind.signature + step;
  for (int d = 0, dims = conversion.kind.plan.from.dims; d < dims; ++d) {
    hash = (hash ^ conversion.before[d]) * 0x9e3779b97f4a7c15u;
  }
  hash ^= hash >> 32;
  return conversion.kind.counted ? hash_of_counts(conversion, hash) : hash;
}

}  // namespace meshwise::detail
