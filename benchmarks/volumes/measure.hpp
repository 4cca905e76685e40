// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "meshwise/fabric/thread/launch.hpp"
#include "meshwise/trace/ledger.hpp"
#include "table.hpp"

namespace volumes {

/// Runs program(mesh) on a grid of all ranks.
template <class Grid, class Program>
void on_grid(const std::array<int, Grid::rank>& sizes, const Program& program) {
  meshwise::LaunchOptions options;
  options.deadline = 120;
  meshwise::launch(ranks, options, [&](meshwise::Communicator& world) {
    const Grid mesh(world, sizes);
    program(mesh);
  });
}

/// What all ranks together have communicated in a step, and what they hold after it.
template <class Grid, class Step>
meshwise::Ledger ledger_of(const Grid& mesh, const Step& step) {
  const auto axes = meshwise::traffic_of(mesh);
  const auto groups = meshwise::group_traffic_of(mesh);
  step();
  return meshwise::collect_ledger(mesh, axes, groups);
}

/// Bytes over all axes, each alone or several at once.
inline std::uint64_t sent(const meshwise::Ledger& ledger) {
  std::uint64_t all = 0;
  for (const auto* entries : {&ledger.axes, &ledger.groups}) {
    for (const auto& entry : *entries) all += entry.traffic.volume;
  }
  return all;
}

}  // namespace volumes
