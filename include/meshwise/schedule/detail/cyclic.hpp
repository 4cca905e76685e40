// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace meshwise::detail {

/// Calls run(slot, offset, length) for `count` cyclically consecutive slots of `slots`, beginning at `first`: once, or
/// twice where they wrap. 0 <= first < slots, 0 <= count <= slots; offset is the distance from `first`.
template <class Run>
constexpr void cyclic_runs(int slots, int first, int count, Run run) {
  const int straight = slots - first < count ? slots - first : count;
  if (straight > 0) run(first, 0, straight);
  if (count > straight) run(0, straight, count - straight);
}

}  // namespace meshwise::detail
