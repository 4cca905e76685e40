// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/collective/communicator.hpp"
#include "meshwise/core/memory.hpp"
#include "meshwise/mesh/checks.hpp"
#include "meshwise/mesh/detail/agreement.hpp"
#include "meshwise/trace/traffic.hpp"

namespace meshwise {

struct Gemm;  // core/gemm.hpp: the matrix products of a mesh's local operations

namespace detail {

/// A set of axes of a MeshState, a bit for each.
using AxisSet = std::uint64_t;

/// The ranks that differ in the coordinates of some axes only, in row-major order of them as the state numbers axes.
struct MeshGroup {
  AxisSet axes = 0;
  Communicator own;
  Communicator* line = nullptr;  // `own`, or the world's
  Traffic spent;                 // by the mesh, where others use the communicator too

  bool of_world() const { return line != &own; }
  Traffic traffic() const { return of_world() ? spent : own.traffic(); }

  /// Performs a collective and counts it as the mesh's.
  void run(Call call) {
    const Traffic before = of_world() ? line->traffic() : Traffic{};
    line->run(std::move(call));
    if (of_world()) spent += line->traffic() - before;
  }
};

/// One axis as this rank sees it.
struct MeshAxis {
  std::string name;
  int size = 1;
  int coordinate = 0;
  MeshGroup group;  // the ranks that differ in this coordinate only, in its order
};

/// What all tensors of one rank share. Not a template, so that meshes with fewer axes are views of it.
struct MeshState {
  struct Named {
    AxisSet axes;
    MeshGroup* group;
  };

  Communicator* world = nullptr;
  std::vector<std::unique_ptr<MeshAxis>> axes;
  std::vector<std::unique_ptr<MeshGroup>> groups;  // of several axes that have more than one rank each
  std::vector<Named> sets;                         // every set of axes that has a group
  Heap heap;
  const Gemm* gemm = nullptr;
  Checks checks = Checks::light;
  std::shared_ptr<void> kept;  // what floors above remember between calls

  MeshGroup* find(AxisSet set) const {
    for (const Named& named : sets) {
      if (named.axes == set) return named.group;
    }
    return nullptr;
  }
};

/// The axes of a mesh in its own order, as numbers of the state's.
struct GridView {
  static constexpr std::size_t most_axes = 8;
  MeshState* state = nullptr;
  std::array<std::uint8_t, most_axes> index{};
  std::uint8_t axes = 0;

  MeshAxis& axis(int i) const { return *state->axes[index[static_cast<std::size_t>(i)]]; }
  int size(int i) const { return axis(i).size; }
  int coordinate(int i) const { return axis(i).coordinate; }
  /// The group of a set of at least one axis, a bit for each axis of this view.
  MeshGroup& along(unsigned set) const {
    if ((set & (set - 1)) == 0) return axis(std::countr_zero(set)).group;
    AxisSet mine = 0;
    for (std::size_t i = 0; i < axes; ++i) mine |= static_cast<AxisSet>(set >> i & 1u) << index[i];
    return *state->find(mine);
  }
  friend bool operator==(const GridView& a, const GridView& b) {
    return a.state == b.state && a.index == b.index && a.axes == b.axes;
  }
};

/// The axes of a set that have more than one rank, or one of them.
inline AxisSet wide_axes(const MeshState& state, AxisSet set) {
  AxisSet wide = 0;
  for (std::size_t i = 0; i < state.axes.size(); ++i) {
    if (state.axes[i]->size > 1) wide |= set & AxisSet{1} << i;
  }
  return wide != 0 ? wide : set & (~set + 1);
}

/// This rank's number among those that differ in a set of axes only.
inline int number_within(const MeshState& state, AxisSet set) {
  int number = 0;
  for (std::size_t i = 0; i < state.axes.size(); ++i) {
    if ((set >> i & 1u) != 0) number = number * state.axes[i]->size + state.axes[i]->coordinate;
  }
  return number;
}

inline void add_axis(MeshState& state, const std::string& name, int size, int coordinate, Communicator ranks) {
  ranks.set_name(name);
  auto axis = std::make_unique<MeshAxis>();
  axis->name = name;
  axis->size = size;
  axis->coordinate = coordinate;
  axis->group.axes = AxisSet{1} << state.axes.size();
  axis->group.own = std::move(ranks);
  axis->group.line = &axis->group.own;
  state.sets.push_back({axis->group.axes, &axis->group});
  state.axes.push_back(std::move(axis));
}

/// Adds a group for a set of several axes with more than one rank each: `line`, or if that is empty the world.
inline void add_group(MeshState& state, AxisSet set, Communicator ranks) {
  state.groups.push_back(std::make_unique<MeshGroup>());
  MeshGroup& group = *state.groups.back();
  group.axes = set;
  group.own = std::move(ranks);
  group.line = group.own.empty() ? state.world : &group.own;
  if (!group.of_world()) {
    std::string name;
    for (std::size_t i = 0; i < state.axes.size(); ++i) {
      if ((set >> i & 1u) != 0) name += (name.empty() ? "" : "+") + state.axes[i]->name;
    }
    group.own.set_name(std::move(name));
  }
  state.sets.push_back({set, &group});
}

/// The level of checks that this rank's environment wants. If ranks wanted different ones, they would wait for each
/// other's checks in vain.
inline Checks agreed_checks(Communicator& world, Checks checks) {
  if (world.size() == 1) return checks;
  const std::vector<Checks> all = gathered_for_check(world, "Mesh", checks);
  const Dissent dissent = dissent_among(all);
  if (dissent.other >= 0) {
    const auto says = [&](int rank) {
      return std::string(checks_name(all[static_cast<std::size_t>(rank)])) + " on rank " + std::to_string(rank);
    };
    fail("Mesh", "the same level of checks on all ranks", says(dissent.reference) + " and " + says(dissent.other),
         "set MESHWISE_CHECKS alike in the environment of all ranks, or nowhere", world.rank());
  }
  return checks;
}

/// Arranges the ranks of a world in a grid, the last axis varying fastest; see Mesh.
inline std::shared_ptr<MeshState> arranged(Communicator& world, std::span<const int> sizes,
                                           std::span<const std::string> names, const Gemm* gemm) {
  auto result = std::make_shared<MeshState>();
  MeshState& state = *result;
  state.world = &world;
  state.gemm = gemm;
  state.checks = agreed_checks(world, checks_from_environment());
  int stride = world.size();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    stride /= sizes[i];
    const int coordinate = world.rank() / stride % sizes[i];
    add_axis(state, names[i], sizes[i], coordinate, world.split(world.rank() - coordinate * stride, coordinate));
  }
  const AxisSet all = (AxisSet{1} << sizes.size()) - 1;
  for (AxisSet set = 1; set <= all; ++set) {
    if (state.find(set) != nullptr) continue;
    const AxisSet wide = wide_axes(state, set);
    if (wide != set) {
      state.sets.push_back({set, state.find(wide)});  // a smaller number, and so known
    } else if (set == wide_axes(state, all)) {
      add_group(state, set, {});
    } else {
      add_group(state, set, world.split(number_within(state, all & ~set), number_within(state, set)));
    }
  }
  return result;
}

/// Adds an axis of the chosen coordinates of another one, in the given order, and groups of it and the other axes of
/// `view`, as many as there are. Collective over the view. The number of the new axis in the state, or -1 on ranks
/// that are not chosen.
inline int narrow_axis(const char* verb, const GridView& view, int which, std::span<const int> chosen) {
  MeshState& state = *view.state;
  MeshAxis& from = view.axis(which);
  const auto refuse = [&](const std::string& found) {
    fail(verb, "different coordinates of " + from.name + ", each in [0, " + std::to_string(from.size) + ")", found,
         "name the coordinates that stay, such as {0, " + std::to_string(from.size - 1) + "}", state.world->rank());
  };
  if (chosen.empty()) refuse("none");
  if (state.axes.size() == 64) refuse("more meshes made of one than it has room for; keep and reuse them");
  int position = -1;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i] < 0 || chosen[i] >= from.size) refuse(std::to_string(chosen[i]));
    for (std::size_t k = 0; k < i; ++k) {
      if (chosen[k] == chosen[i]) refuse(std::to_string(chosen[i]) + " twice");
    }
    if (chosen[i] == from.coordinate) position = static_cast<int>(i);
  }
  const int color = position < 0 ? -1 : 0;
  const AxisSet old = from.group.axes, added = AxisSet{1} << state.axes.size();
  Communicator ranks = from.group.own.split(color, position);
  const std::size_t number = state.axes.size();
  if (position >= 0) add_axis(state, from.name, static_cast<int>(chosen.size()), position, std::move(ranks));

  for (unsigned set = 1; set < 1u << view.axes; ++set) {
    AxisSet others = 0;
    for (std::size_t i = 0; i < view.axes; ++i) others |= static_cast<AxisSet>(set >> i & 1u) << view.index[i];
    if ((others & old) != 0) continue;
    if (chosen.size() > 1 && wide_axes(state, others) == others && view.along(set).line->size() > 1) {
      Communicator group = state.find(others | old)->line->split(color, number_within(state, others | added));
      if (position >= 0) add_group(state, others | added, std::move(group));
    } else if (position >= 0) {
      state.sets.push_back({others | added, state.find(wide_axes(state, others | added))});
    }
  }
  return position < 0 ? -1 : static_cast<int>(number);
}

}  // namespace detail
}  // namespace meshwise
