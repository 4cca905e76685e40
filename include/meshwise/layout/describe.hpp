// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "meshwise/layout/layout_plan.hpp"
#include "meshwise/layout/layout_value.hpp"
#include "meshwise/layout/name.hpp"
#include "meshwise/layout/plan.hpp"
#include "meshwise/layout/plan_volume.hpp"

namespace meshwise {

/// What the axes and dims of layout values are called, in their order.
struct LayoutNames {
  std::vector<std::string> axes;
  std::vector<std::string> dims;
};

namespace detail {

template <class... Ts>
std::vector<std::string> names_of_types(list<Ts...>) {
  return {name_of<Ts>()...};
}
template <Dim... Ds>
std::vector<std::string> names_of_types(Dims<Ds...>) {
  return names_of_types(list<Ds...>{});
}

template <class L, class DimList>
LayoutNames names_on() {
  return {names_of_types(axes_of_layout<L>{}), names_of_types(DimList{})};
}

inline std::string axes_text(AxisBits axes, const LayoutNames& names) {
  std::string text;
  for (std::size_t a = 0; a < names.axes.size(); ++a) {
    if (has_axis(axes, static_cast<int>(a))) text += (text.empty() ? "" : ", ") + names.axes[a];
  }
  return text;
}

/// A share to four digits, and less only for 0.
inline std::string share_text(double share) {
  char text[32];
  std::snprintf(text, sizeof text, share != 0 && share < 0.0001 ? "%.2g" : "%.4g", share);
  return text;
}

}  // namespace detail

/// A layout in words: "batch over dp; seq zigzag over cp, then tp; sum owed over ep". Axes that are not named hold
/// copies; where that is all of them, "replicated".
///
/// names: of all axes and dims. Cost: builds a string.
inline std::string describe(const LayoutValue& layout, const LayoutNames& names) {
  std::string text;
  for (int d = 0; d < layout.dims; ++d) {
    if (layout.split[d] == 0) continue;
    text += (text.empty() ? "" : "; ") + names.dims[static_cast<std::size_t>(d)];
    for (int i = 0; i < layout.split[d]; ++i) {
      const int axis = layout.order[d][i];
      const SplitRule rule = layout.rule[axis];
      text += i == 0 ? " " : ", then ";
      if (rule != SplitRule::contiguous) text += std::string(split_rule_name(rule)) + " ";
      if (i == 0 || rule != SplitRule::contiguous) text += "over ";
      text += names.axes[static_cast<std::size_t>(axis)];
    }
  }
  const detail::AxisBits owed = detail::axes_with(layout, PlacementKind::partial);
  for (int a = 0; a < layout.axes; ++a) {
    if (!detail::has_axis(owed, a)) continue;
    text += (text.empty() ? "" : "; ") + std::string(reduction_name(layout.op[a])) + " owed over " +
            detail::axes_text(owed, names);
    break;  // the Partials of a layout have one reduction
  }
  return text.empty() ? "replicated" : text;
}

/// The same for a layout type; dims are named in the order in which it shards them.
template <AnyLayout L>
std::string describe() {
  using dims = decltype(detail::dims_sharded_by(detail::placements_of<L>{}));
  return describe(layout_value<L, dims>, detail::names_on<L, dims>());
}

/// A plan in words: the layouts at both ends, one line for each step with its cost and the layout after it, the sum.
///
/// Costs are the bytes that a rank receives as a share of the whole tensor when every axis counts as 4.
/// names: of all axes and dims. Cost: builds a string.
inline std::string explain(const LayoutPlan& plan, const LayoutNames& names) {
  std::string text = "from: " + describe(plan.from, names) + "\n";
  if (!plan.possible) return text + "there is no way: a Partial would have to change its reduction\n";
  for (int i = 0; i < plan.count; ++i) {
    const PlanStep& step = plan.steps[i];
    text += std::to_string(i + 1) + ". " + transition_name(step.what) + " over " + detail::axes_text(step.axes, names);
    text += ", receives " + detail::share_text(step.cost) + ": " + describe(step.after, names) + "\n";
  }
  if (plan.count == 0) text += "nothing to do\n";
  return text + "in all: a rank receives " + detail::share_text(plan.cost) + " of the tensor, every axis taken as 4\n";
}

/// The same with the bytes that all ranks of a mesh receive: see plan_volume for the numbers.
inline std::string explain(const LayoutPlan& plan, const LayoutNames& names, std::span<const int> sizes,
                           std::span<const std::size_t> extents, std::size_t element_size,
                           std::span<const DimCounts> counts = {}) {
  std::string text = explain(plan, names);
  if (!plan.possible) return text;
  std::string steps;
  for (int i = 0; i < plan.count; ++i) {
    if (!communicates(plan.steps[i].what)) continue;
    steps +=
        (steps.empty() ? " = " : " + ") + std::to_string(step_volume(plan, i, sizes, extents, element_size, counts));
  }
  if (const std::uint64_t anew = recount_volume(plan, sizes, extents, element_size, counts); anew != 0) {
    text += "then an exchange: parts that are counted get their new counts\n";
    steps += (steps.empty() ? " = " : " + ") + std::to_string(anew);
  }
  return text + "here: all ranks together receive " +
         std::to_string(plan_volume(plan, sizes, extents, element_size, counts)) + steps + " bytes\n";
}

/// The plan between two layouts in words; DimList as for `plan`.
template <AnyLayout From, AnyLayout To, class DimList = detail::sharded_dims<From, To>>
std::string explain() {
  return explain(plan<From, To, DimList>, detail::names_on<From, DimList>());
}

}  // namespace meshwise
