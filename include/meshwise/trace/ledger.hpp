// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/core/detail/list.hpp"
#include "meshwise/core/memory.hpp"
#include "meshwise/layout/name.hpp"
#include "meshwise/mesh/mesh.hpp"
#include "meshwise/trace/traffic.hpp"

namespace meshwise {

/// What all ranks of a mesh have communicated and allocated, added up.
struct Ledger {
  /// One mesh axis, summed over all ranks.
  struct AxisEntry {
    std::string name;
    int ranks = 1;
    Traffic traffic;
  };
  /// One category of memory: bytes in use and peaks, the sum over the ranks and the largest rank.
  struct MemoryEntry {
    Category category = Category::parameters;
    std::uint64_t current = 0;
    std::uint64_t peak = 0;
    std::uint64_t largest = 0;  ///< in use on the rank that has the most
    std::uint64_t largest_peak = 0;
  };

  std::vector<AxisEntry> axes;
  std::vector<AxisEntry> groups;  ///< conversions over several axes at once: the sets of axes with more than one rank
  std::array<MemoryEntry, categories> memory;
};

/// The traffic of this rank on each axis, to subtract from a later one. Cost: none, local.
template <Axis... Axes>
std::array<Traffic, sizeof...(Axes)> traffic_of(const Mesh<Axes...>& mesh) {
  return {mesh.template along<Axes>().traffic()...};
}

namespace detail {

/// The sets of several axes of a mesh that have more than one rank each, a bit for each axis.
inline List<unsigned> wide_sets(const GridView& view) {
  List<unsigned> sets;
  for (unsigned set = 1; set < 1u << view.axes; ++set) {
    bool wide = (set & (set - 1)) != 0;
    for (int a = 0; a < view.axes; ++a) wide = wide && ((set >> a & 1u) == 0 || view.size(a) > 1);
    if (wide) sets.push_back(set);
  }
  return sets;
}

}  // namespace detail

/// The same for several axes at once, in the order of Ledger::groups.
template <Axis... Axes>
std::vector<Traffic> group_traffic_of(const Mesh<Axes...>& mesh) {
  std::vector<Traffic> result;
  for (const unsigned set : detail::wide_sets(mesh.view())) result.push_back(mesh.view().along(set).traffic());
  return result;
}

/// Adds up what the ranks of a mesh have done since `since` (a traffic_of, or nothing: since the mesh was made), and
/// over several axes at once since `groups_since` (a group_traffic_of, or nothing).
///
/// Cost: two small all-reduces over the world communicator, whose own traffic is not part of the ledger. Collective.
template <Axis... Axes>
Ledger collect_ledger(const Mesh<Axes...>& mesh, const std::array<Traffic, sizeof...(Axes)>& since = {},
                      const std::vector<Traffic>& groups_since = {}) {
  constexpr std::size_t n = sizeof...(Axes);
  detail::List<Traffic> all;
  const auto now = traffic_of(mesh);
  for (std::size_t i = 0; i < n; ++i) all.push_back(now[i] - since[i]);
  const std::vector<Traffic> groups_now = group_traffic_of(mesh);
  for (std::size_t i = 0; i < groups_now.size(); ++i) {
    all.push_back(i < groups_since.size() ? groups_now[i] - groups_since[i] : groups_now[i]);
  }
  detail::List<std::uint64_t> sums;
  for (const Traffic& t : all) {
    for (const std::uint64_t count : {t.calls, t.messages, t.volume, t.moved}) sums.push_back(count);
  }
  std::array<std::uint64_t, 2 * categories> largest{};
  for (std::size_t c = 0; c < categories; ++c) {
    const Usage usage = mesh.memory().usage(static_cast<Category>(c));
    sums.push_back(usage.current);
    sums.push_back(usage.peak);
    largest[2 * c] = usage.current;
    largest[2 * c + 1] = usage.peak;
  }
  all_reduce<Sum>(mesh.world(), sums);
  all_reduce<Max>(mesh.world(), largest);

  Ledger ledger;
  std::size_t at = 0;
  const auto entry = [&](std::string name, int ranks) {
    Ledger::AxisEntry result{std::move(name), ranks, {sums[at], sums[at + 1], sums[at + 2], sums[at + 3]}};
    at += 4;
    return result;
  };
  const std::array<std::string, n> names{name_of<Axes>()...};
  for (std::size_t i = 0; i < n; ++i) ledger.axes.push_back(entry(names[i], mesh.view().size(static_cast<int>(i))));
  for (const unsigned set : detail::wide_sets(mesh.view())) {
    std::string name;
    int ranks = 1;
    for (std::size_t i = 0; i < n; ++i) {
      if ((set >> i & 1u) == 0) continue;
      name += (name.empty() ? "" : "+") + names[i];
      ranks *= mesh.view().size(static_cast<int>(i));
    }
    ledger.groups.push_back(entry(std::move(name), ranks));
  }
  for (std::size_t c = 0; c < categories; ++c) {
    ledger.memory[c] = {static_cast<Category>(c), sums[at + 2 * c], sums[at + 2 * c + 1], largest[2 * c],
                        largest[2 * c + 1]};
  }
  return ledger;
}

}  // namespace meshwise
