// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "meshwise/core/detail/list.hpp"
#include "meshwise/core/detail/sort.hpp"
#include "meshwise/trace/timeline.hpp"

namespace meshwise {

/// How the time of one rank divides, in seconds. Moments count once, however many events cover them.
struct Overlap {
  double compute = 0;  ///< in spans, and not waiting for others
  double exposed = 0;  ///< in blocking operations and waits: communication that nothing hides
  double flying = 0;   ///< with something started on its way
  double hidden = 0;   ///< of these, those of `compute`

  friend constexpr bool operator==(const Overlap&, const Overlap&) = default;
};

/// Sums up a timeline. Events that have not ended count up to the last time in it. Cost: a sort of its events.
inline Overlap overlap(const Timeline& timeline) {
  enum Layer : std::size_t { spans, blocked, flights, layers };
  struct Edge {
    std::int64_t time = 0;
    Layer layer = spans;
    int step = 0;
  };
  std::int64_t last = 0;
  for (const Timeline::Event& event : timeline.events()) {
    last = last < event.begin ? event.begin : last;
    last = last < event.end ? event.end : last;
  }
  detail::List<Edge> edges;
  edges.reserve(2 * timeline.events().size());
  for (const Timeline::Event& event : timeline.events()) {
    const Layer layer = event.kind == Timeline::Kind::span     ? spans
                        : event.kind == Timeline::Kind::flight ? flights
                                                               : blocked;
    edges.push_back({event.begin, layer, 1});
    edges.push_back({event.end != 0 ? event.end : last, layer, -1});
  }
  detail::sort_stably(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.time < b.time; });
  Overlap result;
  std::array<int, layers> open{};
  for (std::size_t i = 0; i < edges.size(); ++i) {
    open[edges[i].layer] += edges[i].step;
    if (i + 1 == edges.size()) break;
    const double seconds = static_cast<double>(edges[i + 1].time - edges[i].time) * 1e-9;
    const bool computes = open[spans] > 0 && open[blocked] == 0;
    if (computes) result.compute += seconds;
    if (open[blocked] > 0) result.exposed += seconds;
    if (open[flights] > 0) result.flying += seconds;
    if (computes && open[flights] > 0) result.hidden += seconds;
  }
  return result;
}

/// Seconds that overlap could hide at most: the communication of a run without overlap, or the compute that is left to
/// hide it under, whichever is less.
///
/// without: of a run that waits for everything at once. compute_left: seconds that are computed after the first and
/// before the last operation could be started; at most `without.compute`.
constexpr double hideable(const Overlap& without, double compute_left) {
  return without.exposed < compute_left ? without.exposed : compute_left;
}
constexpr double hideable(const Overlap& without) { return hideable(without, without.compute); }

/// Which part of that a run with overlap has hidden: 1 is all, 0 none; negative if it waits longer than without. 1 if
/// there was nothing to hide.
constexpr double hidden_part(const Overlap& without, const Overlap& with, double compute_left) {
  const double most = hideable(without, compute_left);
  return most > 0 ? (without.exposed - with.exposed) / most : 1;
}
constexpr double hidden_part(const Overlap& without, const Overlap& with) {
  return hidden_part(without, with, without.compute);
}

}  // namespace meshwise
