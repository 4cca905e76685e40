// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "meshwise/layout/transition_kind.hpp"
#include "meshwise/tensor/detail/collective_steps.hpp"
#include "meshwise/tensor/detail/run_dense.hpp"

namespace meshwise::detail {

/// Carries out the plan of a conversion on one rank's local piece, step by step.
///
/// A step along axes that have one rank changes nothing but the name of what is held. Memory that a step has used up is
/// free before the next one allocates.
class PlanRunner : CollectiveSteps {
 public:
  /// held: of each dim, what this rank holds before.
  PlanRunner(const Conversion& conversion, const Range* held, LocalPiece piece)
      : CollectiveSteps(conversion, held, piece) {}

  void run() {
    for (int i = 0; i < c_.kind.plan.count; ++i) {
      const PlanStep& step = c_.kind.plan.steps[i];
      bool alone = true;
      for (int a = 0; a < view_.axes; ++a) alone = alone && ((step.axes >> a & 1) == 0 || seat_.parts(a) == 1);
      if (alone) continue;
      step_ = i;
      perform(step, c_.kind.plan.before(i));
    }
    if (c_.kind.counted) count_anew();
  }

 private:
  void perform(const PlanStep& step, const LayoutValue& before) {
    LocalShape after = held_;
    for (int d = 0; d < dims(); ++d) after[number(d)].size = local_size(c_, step.after, d, seat_);
    if (piece_.storage.data() == nullptr) refuse_moved_from(view_);
    if (is_dense_collective(step)) {
      run_dense(c_, step, before, step_, held_.data(), piece_);
    } else {
      switch (step.what) {
        case Transition::all_reduce:
          run_all_reduce(c_, view_.along(step.axes), step_, size_of(held_), piece_, PerformInGroup{});
          break;
        case Transition::reduce_scatter: reduce_scatter(step, after); break;
        case Transition::all_gather: all_gather(step, before, after); break;
        case Transition::all_to_all:
          if (step.dense) {
            all_to_all(step, before, after);
            break;
          }
          [[fallthrough]];
        case Transition::exchange: exchange(step, before, after); break;
        case Transition::slice: slice(step, before, after); break;
        case Transition::keep_first: keep_first(step); break;
        case Transition::pad: pad(step, before, after); break;
        case Transition::equal: break;
      }
    }
    held_ = after;
  }

  /// Dims that are Counted along one axis before and afterwards keep their counts up to here, and get the new ones now.
  void count_anew() {
    const LayoutValue& layout = c_.kind.plan.to;
    ExtentsOnTheWay from{}, to{};
    LocalShape shape = held_;
    unsigned set = 0;
    for (int d = 0; d < dims(); ++d) {
      from[number(d)] = &c_.extent(layout, d);
      to[number(d)] = is_counted(layout, d) ? &c_.after[d] : from[number(d)];
      if (*from[number(d)] == *to[number(d)]) continue;
      for (int i = 0; i < layout.split[d]; ++i) set |= 1u << layout.order[d][i];
      shape[number(d)].size = range_of(layout, d, layout.split[d], *to[number(d)], seat_).size;
    }
    if (set == 0) return;
    step_ = c_.kind.plan.count;
    exchange(set, {&layout, from}, {&layout, to}, shape);
    held_ = shape;
  }
};

}  // namespace meshwise::detail
