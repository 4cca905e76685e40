// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ctime>

namespace harness {

/// Nanoseconds of a clock that only goes forward.
inline std::int64_t nanoseconds() {
  std::timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// Sleeps about so long; the core is free meanwhile.
inline void nap(std::int64_t ns) {
  const std::timespec time{static_cast<std::time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  nanosleep(&time, nullptr);
}

}  // namespace harness
