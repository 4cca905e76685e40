// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/collective/gather_v.hpp"
#include "meshwise/core/detail/list.hpp"
#include "meshwise/tensor/detail/boxes.hpp"
#include "meshwise/tensor/detail/verdicts.hpp"
#include "meshwise/tensor/reshard.hpp"

namespace meshwise {

namespace detail {

template <class P>
struct keep_settled {
  static constexpr bool value = !is_partial<P>;
};
/// The same layout with every sum carried out.
template <class L>
using settled_layout = typename decltype(canonical_from<grid_of<L>>(filtered<keep_settled>(placements_of<L>{})))::is;

/// Where the ranks of a mesh, in row-major order of their coordinates, have their pieces of a tensor that owes nothing:
/// the indices of every dim, and none for replicas of a rank before.
inline List<List<Positions>> pieces_of_all(const GridView& view, const LayoutValue& layout, const Extent* extents) {
  Seat seat(view);
  const GroupAxes group(view, (1u << view.axes) - 1);
  int ranks = 1;
  for (int a = 0; a < view.axes; ++a) ranks *= view.size(a);
  List<List<Positions>> pieces(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    int rest = rank;
    bool replica = false;
    for (int i = group.count; i-- > 0;) {
      const int a = group.axis[static_cast<std::size_t>(i)];
      const int coordinate = rest % view.size(a);
      seat.coordinate[static_cast<std::size_t>(a)] = coordinate;
      rest /= view.size(a);
      replica = replica || (layout.is(a, PlacementKind::replicate) && coordinate != 0);
    }
    if (replica) continue;
    for (int d = 0; d < layout.dims; ++d) {
      pieces[static_cast<std::size_t>(rank)].push_back(positions_of(layout, d, extents[d], seat));
    }
  }
  return pieces;
}

}  // namespace detail

/// The whole array that a tensor denotes, in row-major order, on every rank of its mesh.
///
/// x: any layout; sums are carried out. Cost: the plan to a layout in which everything is replicated, and one copy.
/// For tests and output: no rank of a training run has room for it. Collective over the mesh.
template <AnyTensor T>
[[nodiscard]] std::vector<typename detail::bare<T>::element> to_global(T&& x) {
  const auto whole = reshard<CanonicalLayout<typename detail::bare<T>::grid>>(std::forward<T>(x));
  return {whole.local().begin(), whole.local().end()};
}

/// The same on one rank; the others get an empty vector.
///
/// root: a rank of the mesh, as its coordinates count it in row-major order. Cost: the sums, then each piece is sent
/// once: replicas send nothing. Errors: a root that the mesh does not have.
template <AnyTensor T>
[[nodiscard]] std::vector<typename detail::bare<T>::element> to_global(T&& x, int root) {
  using X = detail::bare<T>;
  using E = typename X::element;
  const auto settled = reshard<detail::settled_layout<typename X::layout>>(std::forward<T>(x));
  const detail::GridView& view = settled.mesh().view();
  const auto pieces = detail::pieces_of_all(view, settled.layout_as_value, settled.extents().data());
  if (root < 0 || static_cast<std::size_t>(root) >= pieces.size()) {
    fail("to_global", "a root in [0, " + std::to_string(pieces.size()) + "), the ranks of the mesh",
         std::to_string(root), "count the ranks of this mesh, not those of the world", settled.mesh().world().rank());
  }
  std::vector<std::size_t> counts;
  std::size_t sum = 0;
  for (const auto& piece : pieces) {
    const bool replica = piece.size() != X::rank || (X::rank == 0 && !counts.empty());
    counts.push_back(replica ? 0 : detail::picked_size(piece));
    sum += counts.back();
  }
  const int me = view.axes == 0 ? 0 : view.along((1u << view.axes) - 1).line->rank();
  std::vector<E> gathered(me == root ? sum : 0);
  const std::span<const E> own = settled.local().first(counts[static_cast<std::size_t>(me)]);
  if (pieces.size() == 1) {
    gathered.assign(own.begin(), own.end());
  } else {
    gather_v(*view.along((1u << view.axes) - 1).line, own, std::span<E>(gathered), counts, root);
  }
  if (me != root) return {};

  std::array<std::size_t, X::rank> shape;
  for (std::size_t d = 0; d < X::rank; ++d) shape[d] = settled.extents()[d];
  std::vector<E> whole(settled.size());
  const E* from = gathered.data();
  for (std::size_t rank = 0; rank < pieces.size(); ++rank) {
    if (counts[rank] == 0) continue;
    detail::copy_back(shape, pieces[rank], sizeof(E), reinterpret_cast<const std::byte*>(from),
                      reinterpret_cast<std::byte*>(whole.data()));
    from += counts[rank];
  }
  return whole;
}

}  // namespace meshwise
