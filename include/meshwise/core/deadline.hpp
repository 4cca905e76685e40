// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ctime>

namespace meshwise {

/// Nanoseconds of a clock that only goes forward; the origin is arbitrary.
inline std::int64_t monotonic_nanoseconds() {
  std::timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// How long one operation may wait in all.
///
/// The clock is first read, and the time starts to run, at the first question: an operation that never waits long
/// enough to ask pays nothing.
/// Ordering and lifetime: a value, used by one thread.
class Deadline {
 public:
  /// seconds: 0 and everything beyond thirty years mean no deadline; negative counts as 0.
  explicit constexpr Deadline(double seconds = 0) : seconds_(seconds > 0 && seconds < longest ? seconds : 0) {}

  /// The time allowed in seconds, 0 for no limit.
  constexpr double seconds() const { return seconds_; }

  /// Whether the time is up. The first call starts the clock.
  bool expired() {
    if (seconds_ == 0) return false;
    const std::int64_t now = monotonic_nanoseconds();
    if (end_ == 0) end_ = now + static_cast<std::int64_t>(seconds_ * 1e9);
    return now >= end_;
  }

 private:
  static constexpr double longest = 1e9;

  double seconds_;
  std::int64_t end_ = 0;
};

}  // namespace meshwise
