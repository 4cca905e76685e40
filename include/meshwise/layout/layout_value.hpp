// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "meshwise/core/reduction_kind.hpp"
#include "meshwise/layout/layout.hpp"
#include "meshwise/layout/split_rule.hpp"

namespace meshwise {

enum class PlacementKind : std::uint8_t { replicate, shard, partial };

/// A layout as a value: what the type says, axes and dims by their numbers. Plans are computed with it.
///
/// Axis a is the a-th of the mesh, dim d the d-th of the tensor. The fields of an axis that its kind does not use are
/// zero, so that equal layouts are equal values. Two operations that the library does not define are both `user`; the
/// types keep them apart.
struct LayoutValue {
  static constexpr int most_axes = detail::most_axes_of_a_layout;
  static constexpr int most_dims = 12;

  int axes = 0;
  int dims = 0;
  PlacementKind kind[most_axes]{};
  SplitRule rule[most_axes]{};                ///< where it shards
  std::int8_t dim[most_axes]{};               ///< where it shards
  ReductionKind op[most_axes]{};              ///< where it is partial
  std::int8_t order[most_dims][most_axes]{};  ///< the axes that shard a dim, major to minor
  std::int8_t split[most_dims]{};             ///< how many these are

  constexpr bool is(int axis, PlacementKind k) const { return kind[axis] == k; }

  /// Makes an axis replicated, wherever it was; a Shard loses it, minor axes move up.
  constexpr void replicate(int axis) {
    if (is(axis, PlacementKind::shard)) {
      const int d = dim[axis];
      int at = 0;
      while (order[d][at] != axis) ++at;
      for (; at + 1 < split[d]; ++at) order[d][at] = order[d][at + 1];
      order[d][at] = 0;
      --split[d];
    }
    kind[axis] = PlacementKind::replicate;
    rule[axis] = SplitRule::contiguous;
    dim[axis] = 0;
    op[axis] = ReductionKind::none;
  }
  /// Makes a replicated axis the minor-most one of a dim.
  constexpr void shard(int axis, int d, SplitRule how = SplitRule::contiguous) {
    kind[axis] = PlacementKind::shard;
    rule[axis] = how;
    dim[axis] = static_cast<std::int8_t>(d);
    order[d][split[d]++] = static_cast<std::int8_t>(axis);
  }
  /// Makes a replicated axis partial.
  constexpr void owe(int axis, ReductionKind reduction) {
    kind[axis] = PlacementKind::partial;
    op[axis] = reduction;
  }

  friend constexpr bool operator==(const LayoutValue& a, const LayoutValue& b) {
    if (a.axes != b.axes || a.dims != b.dims) return false;
    for (int i = 0; i < a.axes; ++i) {
      if (a.kind[i] != b.kind[i] || a.rule[i] != b.rule[i] || a.dim[i] != b.dim[i] || a.op[i] != b.op[i]) return false;
    }
    for (int d = 0; d < a.dims; ++d) {
      if (a.split[d] != b.split[d]) return false;
      for (int i = 0; i < a.split[d]; ++i) {
        if (a.order[d][i] != b.order[d][i]) return false;
      }
    }
    return true;
  }
};

namespace detail {

/// Whether a dim is cut by counts that the data dictates; only the axis that is its major one can do that.
constexpr bool is_counted(const LayoutValue& layout, int d) {
  return layout.split[d] != 0 && layout.rule[layout.order[d][0]] == SplitRule::counted;
}
constexpr bool is_counted(const LayoutValue& layout) {
  for (int d = 0; d < layout.dims; ++d) {
    if (is_counted(layout, d)) return true;
  }
  return false;
}
/// Whether the same axis does so in both: its counts are those of one layout until somebody counts anew.
constexpr bool counted_alike(const LayoutValue& a, const LayoutValue& b, int d) {
  return is_counted(a, d) && is_counted(b, d) && a.order[d][0] == b.order[d][0];
}

template <class Axes, class DimList, class A, class Op>
constexpr void place(LayoutValue& value, type<Partial<A, Op>>) {
  value.owe(index_of<A, Axes>, Op::kind);
}
template <class Axes, class DimList, class D, class... Es>
constexpr void place(LayoutValue& value, type<Shard<D, Es...>>) {
  (value.shard(index_of<axis_of<Es>, Axes>, index_of<D, DimList>, entry_traits<Es>::rule), ...);
}

template <class Axes, class DimList, class... Ps>
consteval LayoutValue make_layout_value(list<Ps...>) {
  LayoutValue value;
  value.axes = Axes::size;
  value.dims = DimList::size;
  (place<Axes, DimList>(value, type<Ps>{}), ...);
  return value;
}

}  // namespace detail

namespace detail {

template <class DimList>
struct list_of_dims {
  using is = list<>;
  static constexpr bool valid = false;
};
template <Dim... Ds>
struct list_of_dims<list<Ds...>> {
  using is = list<Ds...>;
  static constexpr bool valid = sizeof...(Ds) <= LayoutValue::most_dims;
};
template <Dim... Ds>
struct list_of_dims<Dims<Ds...>> : list_of_dims<list<Ds...>> {};

template <class List, class... Ds>
consteval bool contains_all(list<Ds...>) {
  return (contains<Ds, List> && ...);
}
template <class... Ps>
consteval auto dims_sharded_by(list<Ps...>) {
  return distinct(joined<decltype(sharded_dim<Ps>())...>());
}

}  // namespace detail

/// The dims of a tensor, at most 12, as `Dims<...>` or `detail::list<...>`, among them all that the layout L shards.
template <class DimList, class L>
concept DimsFor = detail::list_of_dims<DimList>::valid &&
    detail::contains_all<typename detail::list_of_dims<DimList>::is>(
        detail::dims_sharded_by(detail::placements_of<L>{}));

/// A layout type as a value; its dims are numbered as in the list.
template <AnyLayout L, DimsFor<L> DimList>
inline constexpr LayoutValue layout_value =
    detail::make_layout_value<detail::axes_of_layout<L>, typename detail::list_of_dims<DimList>::is>(
        detail::placements_of<L>{});

}  // namespace meshwise
