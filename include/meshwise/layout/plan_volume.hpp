// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "meshwise/core/positions.hpp"
#include "meshwise/layout/detail/plan_cost.hpp"
#include "meshwise/layout/layout_plan.hpp"

namespace meshwise {

/// The numbers of indices that the parts of a Counted dim have before and after a plan; empty where it is not Counted.
/// An axis that counts it at both ends keeps the first ones up to the last step.
struct DimCounts {
  std::span<const std::size_t> from;
  std::span<const std::size_t> to;
};

/// The global indices of dim d that the rank at some coordinates holds, in the order in which it holds them.
///
/// extent: of the whole dim. sizes, coordinates: one per axis of the mesh. counts: those of a Counted dim.
/// Cost: proportional to the number of progressions; allocates for more than four.
constexpr Positions held_positions(const LayoutValue& layout, int d, std::size_t extent, std::span<const int> sizes,
                                   std::span<const int> coordinates, std::span<const std::size_t> counts = {}) {
  Positions held = Range{0, extent};
  for (int i = 0; i < layout.split[d];) {
    const SplitRule rule = layout.rule[layout.order[d][i]];
    std::size_t parts = 1, part = 0;
    do {  // adjacent contiguous axes cut together
      const auto axis = static_cast<std::size_t>(layout.order[d][i++]);
      parts *= static_cast<std::size_t>(sizes[axis]);
      part = part * static_cast<std::size_t>(sizes[axis]) + static_cast<std::size_t>(coordinates[axis]);
    } while (rule == SplitRule::contiguous && i < layout.split[d] && layout.rule[layout.order[d][i]] == rule);
    switch (rule) {
      case SplitRule::contiguous: held = floor_part(held, parts, part); break;
      case SplitRule::chunked: held = chunk_part(held, parts, part); break;
      case SplitRule::zigzag: held = zigzag_part(held, parts, part); break;
      case SplitRule::striped: held = stripe_part(held, parts, part); break;
      case SplitRule::counted: held = counted_part(held, counts, part); break;
    }
  }
  return held;
}

namespace detail {

/// How many indices two lists share.
constexpr std::size_t count_common(const Positions& a, const Positions& b) {
  if (a.is_range() && b.is_range()) {
    const Range x = a.range(), y = b.range();
    const std::size_t begin = x.begin > y.begin ? x.begin : y.begin, end = x.end() < y.end() ? x.end() : y.end();
    return begin < end ? end - begin : 0;
  }
  std::size_t n = 0;
  for (const CommonPlaces& shared : common(a, b)) n += shared.count;
  return n;
}

/// Walks over all ranks of a mesh, adding up what one step of a plan makes them receive, or the exchange after the last
/// one.
class StepVolume {
 public:
  constexpr StepVolume(const LayoutPlan& plan, int step, std::span<const int> sizes,
                       std::span<const std::size_t> extents, std::span<const DimCounts> counts)
      : plan_(plan),
        sizes_(sizes),
        extents_(extents),
        counts_(counts),
        before_(plan.before(step)),
        step_(step < plan.count ? plan.steps[step] : PlanStep{Transition::exchange, 0, false, 0, plan.to}),
        recounts_(step == plan.count) {}

  constexpr std::uint64_t elements() const {
    int at[LayoutValue::most_axes]{};
    std::uint64_t all = 0;
    while (true) {
      all += received(at);
      int a = plan_.from.axes - 1;
      for (; a >= 0 && ++at[a] == sizes_[static_cast<std::size_t>(a)]; --a) at[a] = 0;
      if (a < 0) return all;
    }
  }

 private:
  static constexpr bool redistributes(Transition what) {
    return what == Transition::all_gather || what == Transition::all_to_all || what == Transition::exchange;
  }

  constexpr std::span<const std::size_t> counts(const LayoutValue& layout, int d, bool anew) const {
    if (static_cast<std::size_t>(d) >= counts_.size()) return {};
    const DimCounts& both = counts_[static_cast<std::size_t>(d)];
    const bool first = !anew && counted_alike(layout, plan_.from, d);
    const std::span<const std::size_t> wanted = first ? both.from : both.to, other = first ? both.to : both.from;
    return wanted.empty() ? other : wanted;
  }
  /// anew: after counts have been changed.
  constexpr Positions held(const LayoutValue& layout, int d, const int* at, bool anew) const {
    return held_positions(layout, d, extents_[static_cast<std::size_t>(d)], sizes_,
                          {at, static_cast<std::size_t>(layout.axes)}, counts(layout, d, anew));
  }
  constexpr std::uint64_t size(const LayoutValue& layout, const int* at) const {
    std::uint64_t n = 1;
    for (int d = 0; d < layout.dims; ++d) n *= held(layout, d, at, false).size();
    return n;
  }

  /// What the rank receives; of the sums, what its whole group receives, if it is the first one.
  constexpr std::uint64_t received(const int* at) const {
    if (redistributes(step_.what)) {
      std::uint64_t wanted = 1, common = 1;
      for (int d = 0; d < before_.dims; ++d) {
        const Positions after = held(step_.after, d, at, recounts_);
        wanted *= after.size();
        common *= count_common(held(before_, d, at, false), after);
      }
      return wanted - common;
    }
    if (step_.what != Transition::all_reduce && step_.what != Transition::reduce_scatter) return 0;
    std::uint64_t ranks = 1;
    for (int a = 0; a < before_.axes; ++a) {
      if (!has_axis(step_.axes, a)) continue;
      if (at[a] != 0) return 0;
      ranks *= static_cast<std::uint64_t>(sizes_[static_cast<std::size_t>(a)]);
    }
    const std::uint64_t whole = size(before_, at);
    return (step_.what == Transition::all_reduce ? 2 : 1) * (ranks - 1) * whole;
  }

  const LayoutPlan& plan_;
  std::span<const int> sizes_;
  std::span<const std::size_t> extents_;
  std::span<const DimCounts> counts_;
  const LayoutValue& before_;
  const PlanStep step_;
  bool recounts_;  ///< not a step: what is Counted alike at both ends is counted anew
};

}  // namespace detail

/// Bytes that all ranks of a mesh together receive in one step of a plan.
///
/// sizes: ranks along each axis. extents: of the whole tensor. element_size: in bytes. counts: one for each dim, or
/// nothing if no dim is Counted. What a rank needs and does not hold for redistributions, (p - 1) L for a
/// reduce_scatter and twice that for an all_reduce of L bytes by p ranks: uneven and empty parts included. A ledger
/// counts the same. Cost: the number of ranks times the dims; local steps cost nothing.
constexpr std::uint64_t step_volume(const LayoutPlan& plan, int step, std::span<const int> sizes,
                                    std::span<const std::size_t> extents, std::size_t element_size,
                                    std::span<const DimCounts> counts = {}) {
  if (!communicates(plan.steps[step].what)) return 0;
  return detail::StepVolume(plan, step, sizes, extents, counts).elements() * element_size;
}

/// The same for what follows the steps: an exchange where dims that one axis counts at both ends get other counts.
constexpr std::uint64_t recount_volume(const LayoutPlan& plan, std::span<const int> sizes,
                                       std::span<const std::size_t> extents, std::size_t element_size,
                                       std::span<const DimCounts> counts) {
  for (int d = 0; d < plan.to.dims; ++d) {
    if (static_cast<std::size_t>(d) >= counts.size() || !detail::counted_alike(plan.from, plan.to, d)) continue;
    return detail::StepVolume(plan, plan.count, sizes, extents, counts).elements() * element_size;
  }
  return 0;
}

/// What all of a change makes them receive: the steps, and where counts change, what follows them.
constexpr std::uint64_t plan_volume(const LayoutPlan& plan, std::span<const int> sizes,
                                    std::span<const std::size_t> extents, std::size_t element_size,
                                    std::span<const DimCounts> counts = {}) {
  std::uint64_t bytes = recount_volume(plan, sizes, extents, element_size, counts);
  for (int i = 0; i < plan.count; ++i) bytes += step_volume(plan, i, sizes, extents, element_size, counts);
  return bytes;
}

}  // namespace meshwise
