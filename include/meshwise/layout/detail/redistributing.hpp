// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "meshwise/layout/detail/plan_cost.hpp"
#include "meshwise/layout/transition_kind.hpp"

namespace meshwise::detail {

/// What the change of shards from one layout to another is called. Not for sums; the layouts differ.
struct Redistributing {
  Transition what = Transition::exchange;
  bool dense = false;  ///< all axes that take part cut contiguously before and after
};

/// Whether the last n entries of dim d are cut contiguously.
constexpr bool tail_is_contiguous(const LayoutValue& l, int d, int n) {
  for (int i = l.split[d] - n; i < l.split[d]; ++i) {
    if (l.rule[l.order[d][i]] != SplitRule::contiguous) return false;
  }
  return true;
}

/// all_gather and all_to_all take runs of contiguous axes, in the same order where they join, or one axis of any rule.
constexpr Redistributing name_of_change(const LayoutValue& from, const LayoutValue& to) {
  int changed[2]{};
  int changes = 0;
  bool dense = true, tails = true;
  int leaving[2]{}, joining[2]{};
  for (int d = 0; d < from.dims; ++d) {
    const int same = common_prefix(from, to, d);
    const int gone = from.split[d] - same, come = to.split[d] - same;
    if (gone == 0 && come == 0) continue;
    dense = dense && tail_is_contiguous(from, d, gone) && tail_is_contiguous(to, d, come);
    if (changes == 2 || (gone != 0 && come != 0)) tails = false;
    if (changes < 2) {
      changed[changes] = d;
      leaving[changes] = gone;
      joining[changes] = come;
    }
    ++changes;
  }
  if (!tails || changes > 2) return {Transition::exchange, dense};
  if (changes == 1) {
    const bool gather = joining[0] == 0 && (dense || leaving[0] == 1);
    const bool cut = leaving[0] == 0;
    return {gather ? Transition::all_gather : cut ? Transition::slice : Transition::exchange, dense};
  }
  const int source = leaving[0] != 0 ? 0 : 1, target = 1 - source;
  const int n = leaving[source];
  if (n == 0 || joining[target] != n || (!dense && n != 1)) return {Transition::exchange, dense};
  for (int i = 0; i < n; ++i) {
    const int d = changed[source], e = changed[target];
    if (from.order[d][from.split[d] - n + i] != to.order[e][to.split[e] - n + i]) return {Transition::exchange, dense};
  }
  return {Transition::all_to_all, dense};
}

}  // namespace meshwise::detail
