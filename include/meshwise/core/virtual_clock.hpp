// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "meshwise/core/deadline.hpp"

namespace meshwise {

/// The time of one rank in a rehearsal, in nanoseconds: it stands still while the program runs, and goes on when the
/// program says how long something takes, or when it waits for something that is due later.
///
/// With it overlap is a number that does not depend on the machine: see `delayed` and Timeline.
/// Ordering and lifetime: one thread at a time; outlives what goes by it.
class VirtualClock {
 public:
  VirtualClock() = default;
  VirtualClock(const VirtualClock&) = delete;
  VirtualClock& operator=(const VirtualClock&) = delete;

  std::int64_t now() const { return now_; }
  /// Something has taken so many seconds. Negative ones count as none.
  void advance(double seconds) { wait_until(now_ + static_cast<std::int64_t>(seconds * 1e9)); }
  /// It is at least this late.
  void wait_until(std::int64_t time) { now_ = time > now_ ? time : now_; }

 private:
  std::int64_t now_ = 1;  // 0 is "not yet" in a Timeline
};

namespace detail {

/// The time by a clock, or by the machine's if it is null.
inline std::int64_t time_by(const VirtualClock* clock) {
  return clock == nullptr ? monotonic_nanoseconds() : clock->now();
}

}  // namespace detail
}  // namespace meshwise
