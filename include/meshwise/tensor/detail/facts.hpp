// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdio>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshwise/core/element.hpp"
#include "meshwise/layout/describe.hpp"
#include "meshwise/mesh/detail/agreement.hpp"
#include "meshwise/tensor/detail/conversion.hpp"

namespace meshwise::detail {

/// What checks across ranks know of a tensor without its types.
struct TensorFacts {
  const GridView& view;
  const LayoutValue& layout;
  const Extent* extents;
  std::string element;
  std::vector<std::string> dims;  ///< may be empty where nobody knows their names
};

template <class T>
TensorFacts facts_of(const T& x) {
  return {x.mesh().view(), T::layout_as_value, x.extents().data(), name_of<typename T::element>(),
          names_of_types(typename T::dims{})};
}

inline LayoutNames names_for(const GridView& view, const LayoutValue& layout, std::vector<std::string> dims) {
  LayoutNames names;
  for (int a = 0; a < view.axes; ++a) names.axes.push_back(view.axis(a).name);
  names.dims = std::move(dims);
  while (names.dims.size() < static_cast<std::size_t>(layout.dims)) {
    names.dims.push_back("dim " + std::to_string(names.dims.size()));
  }
  return names;
}

/// "batch 4, seq 8 in parts of 3 5"; counts where a layout uses them.
inline std::string extents_text(const LayoutValue& layout, const Extent* extents, const LayoutNames& names) {
  std::string text;
  for (int d = 0; d < layout.dims; ++d) {
    text += (d == 0 ? "" : ", ") + names.dims[static_cast<std::size_t>(d)] + " " + std::to_string(extents[d].size());
    if (!is_counted(layout, d)) continue;
    text += " in parts of";
    for (const std::size_t n : extents[d].counts()) text += " " + std::to_string(n);
  }
  return text.empty() ? "no dims" : text;
}
inline std::string mesh_text(const GridView& view) {
  std::string text;
  for (int a = 0; a < view.axes; ++a) {
    text += (a == 0 ? "" : " x ") + view.axis(a).name + " " + std::to_string(view.size(a));
  }
  return text;
}

/// Says what a tensor is like; nothing of where this rank is.
inline void state_tensor(Statement& statement, const TensorFacts& facts) {
  const LayoutNames names = names_for(facts.view, facts.layout, facts.dims);
  statement.add("mesh", mesh_text(facts.view));
  statement.add("element", facts.element);
  statement.add("layout", describe(facts.layout, names));
  statement.add("extents", extents_text(facts.layout, facts.extents, names));
}

/// The axes that have more than one rank, of those for which `keep` holds.
template <class Keep>
unsigned wide_axes_where(const GridView& view, const Keep& keep) {
  unsigned set = 0;
  for (int a = 0; a < view.axes; ++a) {
    if (view.size(a) > 1 && keep(a)) set |= 1u << a;
  }
  return set;
}

/// Before a conversion whose mesh is checked `communicating`: the ranks that will meet in its steps say what they are
/// about to convert. problem: see Statement.
inline void agree_on(const char* verb, const Conversion& c, std::string problem) {
  const LayoutPlan& plan = c.kind.plan;
  const unsigned set = wide_axes_where(c.view, [&](int a) {
    for (const PlanStep& step : plan) {
      if (communicates(step.what) && has_axis(step.axes, a)) return true;
    }
    // Counts that ranks do not share would only show later: those of a slice, and new ones of a dim that stays Counted.
    if (!c.kind.counted || !plan.to.is(a, PlacementKind::shard)) return false;
    const int d = plan.to.dim[a];
    if (!is_counted(plan.to, d)) return false;
    return !counted_alike(plan.from, plan.to, d) || !(c.before[d] == c.after[d]);
  });
  if (set == 0) return;
  std::vector<std::string> dims;
  if (c.kind.dims != nullptr) dims = c.kind.dims();
  const LayoutNames names = names_for(c.view, plan.from, std::move(dims));
  Statement statement;
  statement.add("mesh", mesh_text(c.view));
  statement.add("element", element_name(c.kind.element.kind));
  statement.add("layout before", describe(plan.from, names));
  statement.add("layout afterwards", describe(plan.to, names));
  statement.add("extents before", extents_text(plan.from, c.before, names));
  statement.add("extents afterwards", extents_text(plan.to, c.after, names));
  statement.set_problem(std::move(problem));
  statement.compare(*c.view.along(set).line, verb);
}

/// Before an exchange: all ranks have found the same blocks.
inline void agree_on_routes(Communicator& ranks, const Routes& routes, std::size_t elements) {
  Digest digest;
  for (const auto* lists : {&routes.held, &routes.wanted}) {
    for (const std::vector<int>& slots : *lists) digest.add(slots.data(), slots.size() * sizeof(int));
  }
  Statement statement;
  statement.add("number of blocks", std::to_string(routes.blocks));
  statement.add("number of elements", std::to_string(elements));
  statement.add("hash of who holds and who wants which blocks", std::to_string(digest.lane[0]));
  statement.compare(ranks, "exchange");
}

/// A value with its bits, most significant first: "-0 (0x8000000000000000)".
template <class E>
std::string text_of_value(const std::byte* data) {
  char text[40] = "";
  if constexpr (std::is_same_v<E, double>) {
    std::snprintf(text, sizeof text, "%.17g ", *reinterpret_cast<const E*>(data));
  } else if constexpr (FloatElement<E>) {
    std::snprintf(text, sizeof text, "%.9g ",
                  static_cast<double>(static_cast<float>(*reinterpret_cast<const E*>(data))));
  } else if constexpr (std::is_integral_v<E>) {
    std::snprintf(text, sizeof text, "%s ", std::to_string(*reinterpret_cast<const E*>(data)).c_str());
  }
  std::string result = std::string(text) + "(0x";
  constexpr const char* digits = "0123456789abcdef";
  for (std::size_t i = 0; i < sizeof(E); ++i) {
    const auto one =
        std::to_integer<unsigned>(data[std::endian::native == std::endian::little ? sizeof(E) - 1 - i : i]);
    result += {digits[one >> 4], digits[one & 15]};
  }
  return result + ")";
}

}  // namespace meshwise::detail
