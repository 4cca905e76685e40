// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "meshwise/tensor/detail/verdicts.hpp"

namespace meshwise {

namespace detail {

template <class Axes>
struct grid_from;
template <class... As>
struct grid_from<list<As...>> {
  using is = Mesh<As...>;
};

template <class A, class P>
consteval bool shards_alone() {
  return !placement_traits<P>::shard || axes_of<P>::size == 1;
}

/// The verdict on leaving axis A: the tensor on the mesh without it.
template <class T, class A>
consteval auto inside_verdict() {
  using L = typename T::layout;
  if constexpr (!contains<A, axes_of_layout<L>>) {
    return type<refused<because::axis_not_in_the_mesh<A>, try_<name_an_axis_of_this_mesh>, L>>{};
  } else if constexpr (!shards_alone<A, placement_on<L, A>>()) {
    return type<refused<because::axis_does_not_shard_its_dim_alone<A>, try_<move_the_minor_axes_first>, L>>{};
  } else {
    using grid = typename grid_from<without<A, axes_of_layout<L>>>::is;
    using layout = typename decltype(canonical_from<grid>(erase_axis<A>::all(placements_of<L>{})))::is;
    return type<accepted<Tensor<typename T::element, typename T::dims, layout, typename T::space>>>{};
  }
}
template <class T, class A>
using inside_of = typename decltype(inside_verdict<bare<T>, A>())::is;

template <class L, class P, class Grid>
consteval auto outside_layout() {
  return canonical_from<Grid>(placements_of<L>{} + list<P>{});
}

}  // namespace detail

/// Takes axis A out of the mesh: this coordinate's piece as a tensor of its own on the remaining axes.
///
/// x: any layout in which A does not share a dim with other axes. A dim that A shards has the extent of this
/// coordinate's part; a Partial or replicated value is just what this coordinate holds. Cost: none, storage is shared
/// (and copied when one of the two is written). Lifetime: the mesh's.
/// Errors: refused if A shards a dim together with other axes, because a part of an uneven split is not split evenly.
template <Axis A, AnyTensor T>
  requires detail::is_accepted<detail::inside_of<T, A>>
auto inside(const T& x) {
  using Result = typename detail::inside_of<T, A>::is;
  using P = detail::placement_on<typename T::layout, A>;
  Extents<typename T::dims> extents = x.extents();
  if constexpr (detail::placement_traits<P>::shard) {
    constexpr std::size_t d = detail::dim_index<typename detail::placement_traits<P>::dim, T>;
    extents[d] = x.ranges()[d].size;
  }
  return Result(x.mesh().template without<A>(), extents, x.storage(), x.offset());
}
template <Axis A, AnyTensor T>
  requires(!detail::is_accepted<detail::inside_of<T, A>>)
auto inside(const T& x) -> detail::inside_of<T, A>;

/// Claims a tensor of the mesh without an axis back: P says what the pieces of the ranks along that axis are together.
///
/// mesh: the mesh that has the axis too. P: `Replicate<A>` (all hold the same), `Partial<A, Op>` (their reduction is
/// meant), or `Shard<D, A>` (they are the parts of dim D). y: this coordinate's tensor. extent: for a Shard, the global
/// extent of D. Cost: none, storage is shared. Errors: a part of another size than the split rule gives.
template <Placement P, class Grid, class E, class D, class L, class S>
auto outside(const Grid& mesh, const Tensor<E, D, L, S>& y, std::size_t extent = 0) {
  static_assert(detail::axes_of<P>::size == 1, "claim one axis at a time");
  using A = detail::front<detail::axes_of<P>>;
  using NewLayout = typename decltype(detail::outside_layout<L, P, Grid>())::is;
  Extents<D> extents = y.extents();
  if constexpr (detail::placement_traits<P>::shard) {
    constexpr std::size_t d = detail::dim_index<typename detail::placement_traits<P>::dim, Tensor<E, D, L, S>>;
    const Range part = split(extent, static_cast<std::size_t>(mesh.template size<A>()),
                             static_cast<std::size_t>(mesh.template coordinate<A>()));
    if (part.size != extents[d]) {
      fail("outside", std::to_string(part.size) + " indices, this rank's part of " + std::to_string(extent),
           std::to_string(extents[d]), "pass the global extent of the dim", mesh.world().rank());
    }
    extents[d] = extent;
  }
  return Tensor<E, D, NewLayout, S>(mesh, extents, y.storage(), y.offset());
}

}  // namespace meshwise
