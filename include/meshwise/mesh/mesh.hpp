// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/collective/communicator.hpp"
#include "meshwise/core/memory.hpp"
#include "meshwise/layout/axis.hpp"
#include "meshwise/layout/detail/list.hpp"
#include "meshwise/layout/name.hpp"
#include "meshwise/layout/refused.hpp"

namespace meshwise {

struct Gemm;  // core/gemm.hpp: the matrix products of this mesh's local operations

namespace detail {

template <class A, class Grid>
using foreign_axis = refused<because::axis_not_in_the_mesh<A>, try_<name_an_axis_of_this_mesh>, Grid>;

/// One axis as this rank sees it.
struct MeshAxis {
  std::string name;
  int size = 1;
  int coordinate = 0;
  Communicator line;  // the ranks that differ in this coordinate only, in its order
};

/// What all tensors of one rank share. Not a template, so that meshes with fewer axes are views of it.
struct MeshState {
  Communicator* world = nullptr;
  std::vector<MeshAxis> axes;
  Heap heap;
  const Gemm* gemm = nullptr;
};

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
  /// library's own). Cost: one split per axis. Errors: sizes whose product is not the number of ranks.
  Mesh(Communicator& world, const std::array<int, sizeof...(Axes)>& sizes, const Gemm* gemm = nullptr)
      : owner_(std::make_shared<detail::MeshState>()), state_(owner_.get()) {
    check(world, sizes);
    state_->world = &world;
    state_->gemm = gemm;
    const std::array<std::string, sizeof...(Axes)> names{name_of<Axes>()...};
    int stride = world.size();
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      stride /= sizes[i];
      const int coordinate = world.rank() / stride % sizes[i];
      Communicator line = world.split(world.rank() - coordinate * stride, coordinate);
      line.set_name(names[i]);
      state_->axes.push_back({names[i], sizes[i], coordinate, std::move(line)});
      index_[i] = static_cast<std::uint8_t>(i);
    }
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
  /// The communicator of the ranks that differ from this one in A only.
  template <Axis A>
  requires detail::contains<A, axes> Communicator& along() const { return entry<A>().line; }
  template <Axis A>
    requires(!detail::contains<A, axes>)
  auto along() const -> detail::foreign_axis<A, Mesh>;
  /// The communicator that the mesh was made from.
  Communicator& world() const { return *state_->world; }
  /// Whether all coordinates are 0.
  bool is_first() const { return ((coordinate<Axes>() == 0) && ...); }

  /// The heap that tensors of a space live in.
  template <class Space = Host>
  Heap& memory() const {
    static_assert(std::is_same_v<Space, Host>, "this mesh has memory in the space Host only");
    return state_->heap;
  }
  /// The matrix products of local operations, or null for the library's own.
  const Gemm* gemm() const { return state_->gemm; }

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

  /// Whether two handles speak of the same grid.
  friend bool operator==(const Mesh& a, const Mesh& b) { return a.state_ == b.state_ && a.index_ == b.index_; }

  /// A handle that does not keep the state alive: what tensors hold.
  Mesh borrowed() const {
    Mesh copy = *this;
    copy.owner_.reset();
    return copy;
  }

 private:
  template <Axis... Others>
  friend class Mesh;
  Mesh() = default;

  template <class A>
  detail::MeshAxis& entry() const {
    return state_->axes[index_[static_cast<std::size_t>(detail::index_of<A, axes>)]];
  }
  template <class... Kept>
  Mesh<Kept...> rebuilt(detail::list<Kept...>) const {
    Mesh<Kept...> mesh;
    mesh.owner_ = owner_;
    mesh.state_ = state_;
    mesh.index_ = {index_[static_cast<std::size_t>(detail::index_of<Kept, axes>)]...};
    return mesh;
  }

  static void check(const Communicator& world, const std::array<int, sizeof...(Axes)>& sizes) {
    long long product = 1;
    std::string text;
    for (int size : sizes) {
      if (size < 1) {
        fail(name_of<Mesh>(), "at least 1 rank along every axis", std::to_string(size), "give sizes of 1 or more",
             world.rank());
      }
      product *= size;
      text += (text.empty() ? "" : " x ") + std::to_string(size);
    }
    if (product != world.size()) {
      fail(name_of<Mesh>(), std::to_string(world.size()) + " ranks, the size of the communicator",
           text + " = " + std::to_string(product), "choose sizes whose product is the number of ranks", world.rank());
    }
  }

  std::shared_ptr<detail::MeshState> owner_;
  detail::MeshState* state_ = nullptr;
  std::array<std::uint8_t, sizeof...(Axes)> index_{};
};

}  // namespace meshwise
