// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/collective/all_gather.hpp"
#include "meshwise/tensor/detail/verdicts.hpp"
#include "meshwise/tensor/replicas.hpp"

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

/// The extent of the dim that P shards, of which this rank's part has `own` indices. said: by the caller.
template <class P, class Grid>
Extent joined_extent(const Grid& mesh, std::size_t own, std::size_t said) {
  if constexpr (counted_dims<P>::size == 0) {
    return said;
  } else {
    auto& ranks = mesh.template along<front<axes_of<P>>>();
    std::vector<std::size_t> counts(static_cast<std::size_t>(ranks.size()));
    meshwise::all_gather(ranks, std::array<std::size_t, 1>{own}, counts);
    Extent result = Extent::of_parts(std::move(counts));
    if (said != 0 && said != result.size()) {
      fail("outside", std::to_string(said) + " indices, the global extent that was passed",
           std::to_string(result.size()) + " in all parts", "leave the extent out: the parts of a Counted dim say it",
           mesh.world().rank());
    }
    return result;
  }
}

/// Checks a claim along the axis of P; in communicating checks with the ranks along it, those along other axes may do
/// something else meanwhile. inner: the extents of this coordinate's tensor.
template <class P, class T>
void check_outside(const T& x, const Extents<typename T::dims>& inner) {
  constexpr int axis = index_of<front<axes_of<P>>, axes_of_layout<typename T::layout>>;
  const unsigned set = wide_axes_where(x.mesh().view(), [](int a) { return a == axis; });
  if constexpr (placement_traits<P>::shard) {
    constexpr std::size_t d = dim_index<typename placement_traits<P>::dim, T>;
    if (x.ranges()[d].size != inner[d].size()) {
      try {
        fail("outside",
             std::to_string(x.ranges()[d].size) + " indices, this rank's part of " +
                 std::to_string(x.extents()[d].size()),
             std::to_string(inner[d].size()), "pass the global extent of the dim", x.mesh().world().rank());
      } catch (const Error& error) {
        tell_others("outside", facts_of(x), set, error);
        throw;
      }
    }
  }
  if (x.mesh().checks() != Checks::communicating) return;
  check_claim("outside", piece_facts_of(x), set, placement_traits<P>::replicate ? set : 0);
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
[[nodiscard]] auto inside(const T& x) {
  using Result = typename detail::inside_of<T, A>::is;
  using P = detail::placement_on<typename T::layout, A>;
  Extents<typename T::dims> extents = x.extents();
  if constexpr (detail::placement_traits<P>::shard) {
    constexpr std::size_t d = detail::dim_index<typename detail::placement_traits<P>::dim, T>;
    extents[d] = x.ranges()[d].size;  // its indices count from 0 in here, whatever the rule
  }
  return Result(x.mesh().template without<A>(), extents, x.storage(), x.offset());
}
template <Axis A, AnyTensor T>
  requires(!detail::is_accepted<detail::inside_of<T, A>>)
[[nodiscard]] auto inside(const T& x) -> detail::inside_of<T, A>;

/// Claims a tensor of the mesh without an axis back: P says what the pieces of the ranks along that axis are together.
///
/// mesh: the mesh that has the axis too. P: `Replicate<A>` (all hold the same), `Partial<A, Op>` (their reduction is
/// meant), or `Shard<D, A>` (they are the parts of dim D by its rule). y: this coordinate's tensor. extent: for a
/// Shard, the global extent of D; of `Shard<D, Counted<A>>` it may be left out, because the parts say it. Cost: none,
/// storage is shared; for Counted one all_gather of a number along A; in communicating checks the ranks along A compare
/// extents, and what they hold if it is claimed to be the same.
/// Errors: a part of another size than the split rule gives; in these checks `mismatch`.
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
    extents[d] = detail::joined_extent<P>(mesh, y.extents()[d], extent);
  }
  Result result(mesh, extents, y.storage(), y.offset());
  detail::check_outside<P>(result, y.extents());
  return result;
}
template <Placement P, Axis... Axes, AnyTensor T>
  requires(detail::is_of_one_axis<P> && !detail::is_accepted<detail::outside_of<T, P, Mesh<Axes...>>>)
[[nodiscard]] auto outside(const Mesh<Axes...>& mesh, const T& y, std::size_t extent = 0)
    -> detail::outside_of<T, P, Mesh<Axes...>>;

}  // namespace meshwise
