// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "meshwise/collective/communicator.hpp"
#include "meshwise/core/detail/list.hpp"
#include "meshwise/core/detail/owned_any.hpp"
#include "meshwise/core/detail/shared.hpp"
#include "meshwise/core/memory.hpp"
#include "meshwise/core/owned.hpp"
#include "meshwise/mesh/checks.hpp"
#include "meshwise/mesh/detail/agreement.hpp"
#include "meshwise/trace/traffic.hpp"

namespace meshwise {

struct Gemm;  // core/gemm.hpp: the matrix products of a mesh's local operations

namespace detail {

/// A set of axes of a MeshState, a bit for each.
using AxisSet = std::uint64_t;

/// The ranks that differ in the coordinates of some axes only, in row-major order of them, axes as in their mesh.
struct MeshGroup {
  AxisSet axes = 0;
  Communicator own;
  Communicator* line = nullptr;  // `own`, or the world's
  Traffic spent;                 // by the mesh, where others use the communicator too
  std::string name;              // of the axes

  bool of_world() const { return line != &own; }
  Traffic traffic() const { return of_world() ? spent : spent + own.traffic(); }

  /// Performs a collective and counts it as the mesh's.
  void run(Call call) {
    if (!of_world()) {
      line->run(std::move(call));
      return;
    }
    const Traffic before = line->traffic();
    line->run(std::move(call));
    spent += line->traffic() - before;
  }

  /// The communicator for what is to be in flight. Others might go on with it on the world's, where nobody could tell
  /// whose traffic it is: from the first one on, such a group has a communicator of its own, by a split.
  Communicator& line_for_started() {
    if (of_world()) {
      own = line->split(0, line->rank());
      own.set_name(name);
      line = &own;
    }
    return own;
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
struct MeshState : Counting {
  explicit MeshState(const MemorySource& memory) : heap(memory) {}

  struct Named {
    AxisSet axes;
    MeshGroup* group;
  };

  Communicator* world = nullptr;
  List<Owned<MeshAxis>> axes;
  List<Owned<MeshGroup>> groups;  // of several axes that have more than one rank each
  List<Named> sets;               // every set of axes that has a group
  Heap heap;
  const Gemm* gemm = nullptr;
  Checks checks = Checks::light;
  OwnedAny kept;  // what floors above remember between calls

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
  Owned<MeshAxis> axis(new MeshAxis);
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
  state.groups.push_back(Owned(new MeshGroup));
  MeshGroup& group = *state.groups.back();
  group.axes = set;
  group.own = std::move(ranks);
  group.line = group.own.empty() ? state.world : &group.own;
  for (std::size_t i = 0; i < state.axes.size(); ++i) {
    if ((set >> i & 1u) != 0) group.name += (group.name.empty() ? "" : "+") + state.axes[i]->name;
  }
  if (!group.of_world()) group.own.set_name(group.name);
  state.sets.push_back({set, &group});
}

/// The level of checks that this rank's environment wants. If ranks wanted different ones, or meshes of other sizes,
/// they would wait for each other in vain.
inline Checks agreed_checks(Communicator& world, Checks checks, std::span<const int> sizes = {}) {
  if (world.size() == 1) return checks;
  struct Wanted {
    Checks checks;
    std::array<int, GridView::most_axes> sizes;
    bool operator==(const Wanted&) const = default;
  } own{checks, {}};
  for (std::size_t i = 0; i < sizes.size(); ++i) own.sizes[i] = sizes[i];
  const List<Wanted> all = gathered_for_check(world, "Mesh", own);
  const Dissent dissent = dissent_among(all);
  if (dissent.other < 0) return checks;
  const auto of = [&](int rank) -> const Wanted& { return all[static_cast<std::size_t>(rank)]; };
  const bool levels = of(dissent.reference).checks != of(dissent.other).checks;
  const auto says = [&](int rank) {
    std::string text = levels ? checks_name(of(rank).checks) : "";
    for (std::size_t i = 0; i < sizes.size() && !levels; ++i) {
      text += (i == 0 ? "" : " x ") + std::to_string(of(rank).sizes[i]);
    }
    return text + " on rank " + std::to_string(rank);
  };
  fail("Mesh", levels ? "the same level of checks on all ranks" : "the same sizes on all ranks",
       says(dissent.reference) + " and " + says(dissent.other),
       levels ? "set MESHWISE_CHECKS alike in the environment of all ranks, or nowhere"
              : "let all ranks arrange themselves alike",
       world.rank());
}

/// Arranges the ranks of a world in a grid, the last axis varying fastest; see Mesh.
inline Shared<MeshState> arranged(Communicator& world, std::span<const int> sizes, std::span<const std::string> names,
                                  const Gemm* gemm) {
  const MemorySource* const memory = world.endpoint("Mesh").memory();
  Shared<MeshState> result(new MeshState(memory == nullptr ? host_memory() : *memory));
  MeshState& state = *result;
  state.world = &world;
  state.gemm = gemm;
  state.checks = agreed_checks(world, checks_from_environment(), sizes);
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

/// Which of the chosen coordinates of an axis this rank has, or -1. Collective over the view. Errors, on all its ranks:
/// coordinates that do not exist or are named twice; `mismatch` where ranks choose others.
inline int chosen_position(const char* verb, const GridView& view, int which, View<int> chosen) {
  const MeshState& state = *view.state;
  const MeshAxis& from = view.axis(which);
  std::string problem, text;
  if (chosen.empty()) problem = "none";
  if (state.axes.size() == 64) problem = "more meshes made of one than it has room for; keep and reuse them";
  int position = -1;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const std::string number = std::to_string(chosen[i]);
    text += (i == 0 ? "" : ", ") + number;
    if (chosen[i] < 0 || chosen[i] >= from.size) problem = number;
    for (std::size_t k = 0; k < i; ++k) {
      if (chosen[k] == chosen[i]) problem = number + " twice";
    }
    if (chosen[i] == from.coordinate) position = static_cast<int>(i);
  }
  Report report;
  report.operation = verb;
  report.expected = "different coordinates of " + from.name + ", each in [0, " + std::to_string(from.size) + ")";
  report.found = problem;
  report.remedy = "name the coordinates that stay, such as {0, " + std::to_string(from.size - 1) + "}";
  report.rank = state.world->rank();
  const Error refusal(std::move(report));
  Statement statement;
  statement.add("coordinates of " + from.name, "{" + text + "}");
  if (!problem.empty()) statement.set_problem(refusal.what());
  statement.compare(*view.along((1u << view.axes) - 1).line, verb);
  if (!problem.empty()) throw refusal;
  return position;
}

/// Adds an axis of the chosen coordinates of another one, in the given order, and groups of it and the other axes of
/// `view`, as many as there are. Collective over the view. The number of the new axis in the state, or -1 on ranks
/// that are not chosen.
inline int narrow_axis(const char* verb, const GridView& view, int which, View<int> chosen) {
  const int position = chosen_position(verb, view, which, chosen);
  MeshState& state = *view.state;
  MeshAxis& from = view.axis(which);
  // The new axis stands where the old one does, though its number is the last one.
  const auto number_in_view = [&](unsigned set) {
    int number = 0;
    for (int i = 0; i < view.axes; ++i) {
      if (i == which) {
        number = number * static_cast<int>(chosen.size()) + position;
      } else if ((set >> i & 1u) != 0) {
        number = number * view.size(i) + view.coordinate(i);
      }
    }
    return number;
  };
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
      Communicator group = state.find(others | old)->line->split(color, number_in_view(set));
      if (position >= 0) add_group(state, others | added, std::move(group));
    } else if (position >= 0) {
      state.sets.push_back({others | added, state.find(wide_axes(state, others | added))});
    }
  }
  return position < 0 ? -1 : static_cast<int>(number);
}

}  // namespace detail
}  // namespace meshwise
