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
    return type<
        refused<because::axis_does_not_shard_its_dim_alone<A>, try_<move_the_other_axes_of_its_dim_first>, L>>{};
  } else {
    using grid = typename grid_from<without<A, axes_of_layout<L>>>::is;
    using layout = typename decltype(canonical_from<grid>(erase_axis<A>::all(placements_of<L>{})))::is;
    return type<accepted<Tensor<typename T::element, typename T::dims, layout, typename T::space>>>{};
  }
}
template <class T, class A>
using inside_of = typename decltype(inside_verdict<operand<T>, A>())::is;

/// The verdict on claiming T back as P on a mesh: the type that results.
template <class T, class P, class Grid>
consteval auto outside_verdict() {
  using L = typename T::layout;
  using A = front<axes_of<P>>;
  using axes = typename mesh_axes<Grid>::is;
  if constexpr (!contains<A, axes>) {
    return type<refused<because::axis_not_in_the_mesh<A>, try_<name_an_axis_of_this_mesh>, Grid>>{};
  } else if constexpr (!std::is_same_v<without<A, axes>, axes_of_layout<L>>) {
    return type<refused<because::meshes_differ, try_<take_the_mesh_with_this_axis_added>, Grid, L>>{};
  } else {
    using layout = typename decltype(canonical_from<Grid>(placements_of<L>{} + list<P>{}))::is;
    using verdict = typename decltype(tensor_verdict<typename T::dims, layout>())::is;
    if constexpr (is_accepted<verdict>) {
      return type<accepted<Tensor<typename T::element, typename T::dims, layout, typename T::space>>>{};
    } else {
      return type<verdict>{};
    }
  }
}
template <class T, class P, class Grid>
using outside_of = typename decltype(outside_verdict<operand<T>, P, Grid>())::is;

template <class P>
inline constexpr bool is_of_one_axis = axes_of<P>::size == 1;

}  // namespace detail

/// Takes axis A out of the mesh: this coordinate's piece as a tensor of its own on the remaining axes.
///
/// x: any layout in which A does not share a dim with other axes. A dim that A shards has the extent of this
/// coordinate's part; a Partial or replicated value is just what this coordinate holds. Cost: none, storage is shared
/// (and copied when one of the two is written). Lifetime: the mesh's.
/// Errors: refused if A shards a dim together with other axes, because a part of an uneven split is not split evenly.
template <Axis A, AnyTensor T>
  requires detail::is_accepted<detail::inside_of<T, A>>
[[nodiscard]] auto inside(const T& x) {
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
[[nodiscard]] auto inside(const T& x) -> detail::inside_of<T, A>;

/// Claims a tensor of the mesh without an axis back: P says what the pieces of the ranks along that axis are together.
///
/// mesh: the mesh that has the axis too. P: `Replicate<A>` (all hold the same), `Partial<A, Op>` (their reduction is
/// meant), or `Shard<D, A>` (they are the parts of dim D). y: this coordinate's tensor. extent: for a Shard, the global
/// extent of D. Cost: none, storage is shared. Errors: a part of another size than the split rule gives.
template <Placement P, Axis... Axes, AnyTensor T>
  requires(detail::is_of_one_axis<P>&& detail::is_accepted<detail::outside_of<T, P, Mesh<Axes...>>>)
[[nodiscard]] auto outside(const Mesh<Axes...>& mesh, const T& y, std::size_t extent = 0) {
  using A = detail::front<detail::axes_of<P>>;
  using Result = typename detail::outside_of<T, P, Mesh<Axes...>>::is;
  if (!(y.mesh() == mesh.template without<A>())) {
    fail("outside", "a tensor of this mesh without the axis " + name_of<A>(), "one of another mesh",
         "build both from the same Mesh", mesh.world().rank());
  }
  Extents<typename T::dims> extents = y.extents();
  if constexpr (detail::placement_traits<P>::shard) {
    constexpr std::size_t d = detail::dim_index<typename detail::placement_traits<P>::dim, T>;
    const Range part = split(extent, static_cast<std::size_t>(mesh.template size<A>()),
                             static_cast<std::size_t>(mesh.template coordinate<A>()));
    if (part.size != extents[d]) {
      fail("outside", std::to_string(part.size) + " indices, this rank's part of " + std::to_string(extent),
           std::to_string(extents[d]), "pass the global extent of the dim", mesh.world().rank());
    }
    extents[d] = extent;
  }
  return Result(mesh, extents, y.storage(), y.offset());
}
template <Placement P, Axis... Axes, AnyTensor T>
  requires(detail::is_of_one_axis<P> && !detail::is_accepted<detail::outside_of<T, P, Mesh<Axes...>>>)
[[nodiscard]] auto outside(const Mesh<Axes...>& mesh, const T& y, std::size_t extent = 0)
    -> detail::outside_of<T, P, Mesh<Axes...>>;

}  // namespace meshwise
