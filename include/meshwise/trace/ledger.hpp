// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "meshwise/collective/all_reduce.hpp"
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
    std::uint64_t largest_peak = 0;
  };

  std::vector<AxisEntry> axes;
  std::array<MemoryEntry, categories> memory;
};

/// The traffic of this rank on each axis, to subtract from a later one. Cost: none, local.
template <Axis... Axes>
std::array<Traffic, sizeof...(Axes)> traffic_of(const Mesh<Axes...>& mesh) {
  return {mesh.template along<Axes>().traffic()...};
}

/// Adds up what the ranks of a mesh have done since `since` (a traffic_of, or nothing: since the mesh was made).
///
/// Cost: two small all-reduces over the world communicator, whose own traffic is not part of the ledger. Collective.
template <Axis... Axes>
Ledger collect_ledger(const Mesh<Axes...>& mesh, const std::array<Traffic, sizeof...(Axes)>& since = {}) {
  constexpr std::size_t n = sizeof...(Axes);
  std::array<std::uint64_t, 4 * n + 2 * categories> sums{};
  std::array<std::uint64_t, categories> peaks{};
  const auto now = traffic_of(mesh);
  for (std::size_t i = 0; i < n; ++i) {
    const Traffic t = now[i] - since[i];
    sums[4 * i] = t.calls;
    sums[4 * i + 1] = t.messages;
    sums[4 * i + 2] = t.volume;
    sums[4 * i + 3] = t.moved;
  }
  for (std::size_t c = 0; c < categories; ++c) {
    const Usage usage = mesh.memory().usage(static_cast<Category>(c));
    sums[4 * n + 2 * c] = usage.current;
    sums[4 * n + 2 * c + 1] = usage.peak;
    peaks[c] = usage.peak;
  }
  all_reduce<Sum>(mesh.world(), std::span(sums));
  all_reduce<Max>(mesh.world(), std::span(peaks));

  Ledger ledger;
  const std::array<std::string, n> names{name_of<Axes>()...};
  const std::array<int, n> sizes{mesh.template size<Axes>()...};
  for (std::size_t i = 0; i < n; ++i) {
    ledger.axes.push_back({names[i], sizes[i], {sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]}});
  }
  for (std::size_t c = 0; c < categories; ++c) {
    ledger.memory[c] = {static_cast<Category>(c), sums[4 * n + 2 * c], sums[4 * n + 2 * c + 1], peaks[c]};
  }
  return ledger;
}

}  // namespace meshwise
