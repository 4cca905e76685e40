// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "meshwise/collective/communicator.hpp"
#include "meshwise/core/detail/shared.hpp"
#include "meshwise/core/memory.hpp"
#include "meshwise/layout/axis.hpp"
#include "meshwise/layout/detail/list.hpp"
#include "meshwise/layout/name.hpp"
#include "meshwise/layout/refused.hpp"
#include "meshwise/mesh/checks.hpp"
#include "meshwise/mesh/detail/state.hpp"

namespace meshwise {

namespace detail {

template <class A, class Grid>
using foreign_axis = refused<because::axis_not_in_the_mesh<A>, try_<name_an_axis_of_this_mesh>, Grid>;

/// The first of some axes that a list lacks, or void.
template <class List, class... As>
using missing_axis = front<join<std::conditional_t<contains<As, List>, list<>, list<As>>..., list<void>>>;

/// Some axes as bits, by their places in a list.
template <class List, class... As>
inline constexpr unsigned set_of = (0u | ... | (1u << index_of<As, List>));

}  // namespace detail

/// Ranks arranged in a grid with named axes; the last axis varies fastest, so its neighbours have neighbouring ranks.
///
/// A Mesh is a handle: copies and meshes with fewer axes (`without`) refer to the same state. It owns one communicator
/// per axis, the heap of its tensors and the matrix products they use.
///
/// Lifetime: the world communicator outlives the mesh, the mesh outlives its tensors. One thread uses it: its rank's.
template <Axis... Axes>
class Mesh {
 public:
  static constexpr int rank = static_cast<int>(sizeof...(Axes));
  using axes = detail::list<Axes...>;

  /// Arranges the ranks of `world`; collective over all of them.
  ///
  /// sizes: ranks along each axis, at least 1, with the product world.size(). gemm: matrix products (null: the
  /// library's own). The level of checks is that of MESHWISE_CHECKS. Cost: one split per axis, and per set of axes with
  /// more than one rank each, but for all of them, which are the world; a comparison of the levels. Errors: sizes whose
  /// product is not the number of ranks; a level that does not exist; sizes or a level that ranks do not agree on.
  Mesh(Communicator& world, const std::array<int, sizeof...(Axes)>& sizes, const Gemm* gemm = nullptr) {
    static_assert(sizeof...(Axes) <= detail::GridView::most_axes,
                  "a mesh has at most 8 axes: merge those that are always used together");
    check(world, sizes);
    const std::array<std::string, sizeof...(Axes)> names{name_of<Axes>()...};
    owner_ = detail::arranged(world, sizes, names, gemm);
    view_.state = owner_.get();
    view_.axes = sizeof...(Axes);
    for (std::size_t i = 0; i < sizes.size(); ++i) view_.index[i] = static_cast<std::uint8_t>(i);
  }

  /// Ranks along an axis.
  template <Axis A>
    requires detail::contains<A, axes>
  int size() const { return entry<A>().size; }
  template <Axis A>
    requires(!detail::contains<A, axes>)
  auto size() const -> detail::foreign_axis<A, Mesh>;
  /// This rank's position along an axis.
  template <Axis A>
    requires detail::contains<A, axes>
  int coordinate() const { return entry<A>().coordinate; }
  template <Axis A>
    requires(!detail::contains<A, axes>)
  auto coordinate() const -> detail::foreign_axis<A, Mesh>;
  /// The communicator of the ranks that differ from this one in the given axes only, in row-major order of their
  /// coordinates in the mesh, whatever the order in which they are named.
  template <Axis A, Axis... More>
    requires(detail::contains<A, axes>&& std::is_void_v<detail::missing_axis<axes, More...>>)
  Communicator& along() const {
    if constexpr (sizeof...(More) == 0) {
      return entry<A>().group.own;
    } else {
      static_assert(std::is_void_v<detail::repeated<detail::list<A, More...>>>,
                    "along<...>: an axis is named twice; list each axis once");
      return *view_.along(detail::set_of<axes, A, More...>).line;
    }
  }
  template <Axis A, Axis... More>
    requires(!std::is_void_v<detail::missing_axis<axes, A, More...>>)
  auto along() const -> detail::foreign_axis<detail::missing_axis<axes, A, More...>, Mesh>;
  /// What the mesh has communicated over one axis, or over several at once.
  template <Axis... As>
    requires(sizeof...(As) > 0 && std::is_void_v<detail::missing_axis<axes, As...>>)
  Traffic traffic()
  const { return view_.along(detail::set_of<axes, As...>).traffic(); }
  /// The communicator that the mesh was made from.
  Communicator& world() const { return *view_.state->world; }
  /// Whether all coordinates are 0.
  bool is_first() const { return ((coordinate<Axes>() == 0) && ...); }

  /// The heap that tensors of a space live in.
  template <class Space = Host>
  Heap& memory() const {
    static_assert(std::is_same_v<Space, Host>, "this mesh has memory in the space Host only");
    return view_.state->heap;
  }
  /// The matrix products of local operations, or null for the library's own.
  const Gemm* gemm() const { return view_.state->gemm; }

  /// The level of checks. Cost: none.
  Checks checks() const { return view_.state->checks; }
  /// Sets it, the same on all ranks, for all handles of this mesh and meshes with fewer axes, and for their tensors.
  void set_checks(Checks checks) const { view_.state->checks = checks; }

  /// The same ranks seen without axis A: what is inside one coordinate of A.
  template <Axis A>
    requires detail::contains<A, axes>
  auto without() const { return rebuilt(detail::without<A, axes>{}); }
  template <Axis A>
    requires(!detail::contains<A, axes>)
  auto without() const -> detail::foreign_axis<A, Mesh>;

  /// The ranks along A alone, as a mesh of one axis.
  template <Axis A>
    requires detail::contains<A, axes> Mesh<A> only()
  const { return rebuilt(detail::list<A>{}); }
  template <Axis A>
    requires(!detail::contains<A, axes>)
  auto only() const -> detail::foreign_axis<A, Mesh>;

  /// Some of the ranks along A, as a mesh of one axis: the first and the last stage of a pipeline, say.
  ///
  /// coordinates: those that stay, in the order they get in the new mesh; the same on all ranks. Collective over A,
  /// like a split: ranks that are not chosen get nothing. Cost: one split; it lives as long as this mesh, so make it
  /// once. Errors: coordinates that do not exist or are named twice; `mismatch` where ranks choose others.
  template <Axis A>
    requires detail::contains<A, axes> std::optional<Mesh<A>> only(std::initializer_list<int> coordinates)
  const { return only<A>().template narrow<A>("Mesh::only", coordinates); }
  template <Axis A>
    requires(!detail::contains<A, axes>)
  auto only(std::initializer_list<int> coordinates) const -> detail::foreign_axis<A, Mesh>;

  /// The same mesh with some of the ranks along A only, so that `without<A>` is that of this mesh: tensors of one stage
  /// are claimed by `outside<Partial<pp>>(*mesh.narrowed<pp>({first, last}), gradient)`.
  ///
  /// coordinates: as for `only`. Collective over all axes of this mesh. Cost: a split per set of axes that A is in.
  template <Axis A>
    requires detail::contains<A, axes> std::optional<Mesh> narrowed(std::initializer_list<int> coordinates)
  const { return narrow<A>("Mesh::narrowed", coordinates); }
  template <Axis A>
    requires(!detail::contains<A, axes>)
  auto narrowed(std::initializer_list<int> coordinates) const -> detail::foreign_axis<A, Mesh>;

  /// Whether two handles speak of the same grid.
  friend bool operator==(const Mesh& a, const Mesh& b) { return a.view_ == b.view_; }

  /// A handle that does not keep the state alive: what tensors hold.
  Mesh borrowed() const {
    Mesh copy;
    copy.view_ = view_;
    return copy;
  }

  /// The axes as the library's untyped code sees them.
  const detail::GridView& view() const { return view_; }

 private:
  template <Axis... Others>
  friend class Mesh;
  Mesh() = default;

  template <class A>
  detail::MeshAxis& entry() const {
    return view_.axis(detail::index_of<A, axes>);
  }
  template <class A>
  std::optional<Mesh> narrow(const char* verb, std::initializer_list<int> coordinates) const {
    constexpr int which = detail::index_of<A, axes>;
    const int number = detail::narrow_axis(verb, view_, which, {coordinates.begin(), coordinates.size()});
    if (number < 0) return std::nullopt;
    Mesh mesh = *this;
    mesh.view_.index[which] = static_cast<std::uint8_t>(number);
    return mesh;
  }
  template <class... Kept>
  Mesh<Kept...> rebuilt(detail::list<Kept...>) const {
    Mesh<Kept...> mesh;
    mesh.owner_ = owner_;
    mesh.view_.state = view_.state;
    mesh.view_.axes = sizeof...(Kept);
    std::size_t i = 0;
    ((mesh.view_.index[i++] = view_.index[static_cast<std::size_t>(detail::index_of<Kept, axes>)]), ...);
    return mesh;
  }

  static void check(const Communicator& world, const std::array<int, sizeof...(Axes)>& sizes) {
    std::uint64_t product = 1;
    bool too_large = false;
    std::string text;
    for (int size : sizes) {
      if (size < 1) {
        fail(name_of<Mesh>(), "at least 1 rank along every axis", std::to_string(size), "give sizes of 1 or more",
             world.rank());
      }
      too_large |= __builtin_mul_overflow(product, static_cast<std::uint64_t>(size), &product);
      text += (text.empty() ? "" : " x ") + std::to_string(size);
    }
    if (too_large || product != static_cast<std::uint64_t>(world.size())) {
      fail(name_of<Mesh>(), std::to_string(world.size()) + " ranks, the size of the communicator",
           text + (too_large ? ", which 64 bits cannot hold" : " = " + std::to_string(product)),
           "choose sizes whose product is the number of ranks", world.rank());
    }
  }

  detail::Shared<detail::MeshState> owner_;
  detail::GridView view_;
};

}  // namespace meshwise
