// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <optional>
#include <utility>

#include "meshwise/core/detail/list.hpp"
#include "meshwise/tensor/detail/boxes.hpp"
#include "meshwise/tensor/detail/plan_state.hpp"

namespace meshwise::detail {

/// The steps of a plan that every rank takes alone.
class LocalSteps : protected PlanState {
 protected:
  using PlanState::PlanState;

  void slice(const PlanStep& step, const LayoutValue& before, const LocalShape& shape) {
    const std::size_t n = size_of(shape);
    List<Positions> part;
    MaybeRegion region;
    if (is_one_cut(step)) {
      region = own_region(step, step.after, held_);
    } else {
      part = part_within(before, step.after);
      region = region_of(sizes(held_), part);
    }
    // One run is shared instead of copied.
    if (region && (region->repeat <= 1 || n == 0)) {
      if (n != 0) piece_.offset += region->offset;
      return;
    }
    Storage result = allocate(c_, n);
    if (region) {
      copy_out(*region, c_.kind.element.size, data(), result.data());
    } else {
      copy_picked(sizes(held_), part, c_.kind.element.size, data(), result.data());
    }
    piece_.become(std::move(result));
  }

  void keep_first(const PlanStep& step) {
    bool keeps = true;
    for (int a = 0; a < view_.axes; ++a) keeps = keeps && ((step.axes >> a & 1) == 0 || seat_.part(a) == 0);
    if (keeps) return;
    const std::size_t n = size_of(held_);
    Storage result = allocate(c_, n);
    c_.kind.reductions.fill(result.data(), n);
    piece_.become(std::move(result));
  }

  void pad(const PlanStep& step, const LayoutValue& before, const LocalShape& shape) {
    const std::size_t n = size_of(shape);
    Storage result = allocate(c_, n);
    c_.kind.reductions.fill(result.data(), n);
    if (is_one_cut(step)) {
      copy_in(own_region(step, before, shape), c_.kind.element.size, data(), result.data());
    } else {
      copy_back(sizes(shape), part_within(step.after, before), c_.kind.element.size, data(), result.data());
    }
    piece_.become(std::move(result));
  }

 private:
  /// Where the own part of a layout lies in what another one holds, which is more.
  List<Positions> part_within(const LayoutValue& whole, const LayoutValue& part) const {
    List<Positions> result;
    for (int d = 0; d < whole.dims; ++d) {
      Positions indices;
      const Positions more = positions_of(whole, d, c_.extent(whole, d), seat_);
      for (const CommonPlaces& places : common(more, positions_of(part, d, c_.extent(part, d), seat_))) {
        indices.append({places.a, places.count, places.step_a});
      }
      result.push_back(std::move(indices));
    }
    return result;
  }

  /// How a single axis cuts its dim in runs: where the own part of a layout lies in the whole of the others.
  Region own_region(const PlanStep& step, const LayoutValue& cut, const LocalShape& whole) const {
    const int axis = std::countr_zero(step.axes), d = cut.dim[axis];
    const CutBox box(cut_of(c_, cut, d, step.axes), seat_.parts(axis), product(whole, 0, d),
                     product(whole, d + 1, dims()));
    return box.inside(seat_.part(axis));
  }
  static bool is_one_cut(const PlanStep& step) { return step.dense && (step.axes & (step.axes - 1)) == 0; }
};

}  // namespace meshwise::detail
