// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "clock.hpp"
#include "crew.hpp"

namespace harness {

/// Nanoseconds for a cache line to go from one core to another and back, over two cores that this process may use; 0
/// where it has one only. The best of a few series, so that work of others counts little. Takes about a millisecond;
/// nobody else of the job should be busy meanwhile.
///
/// Hypervisors move virtual cores about, and with them everything that cores send each other: compare figures only
/// where this is the same.
inline double round_trip(const std::vector<int>& cores) {
  if (cores.size() < 2) return 0;
  constexpr std::uint32_t rounds = 1000;
  constexpr int series = 5;
  struct alignas(128) Line {
    std::atomic<std::uint32_t> turn{0};
  } line;
  std::int64_t best = 0;
  run_on_cores({cores[0], cores[1]}, [&](int side) {
    std::uint32_t turn = static_cast<std::uint32_t>(side);
    for (int k = 0; k < series; ++k) {
      const std::int64_t start = nanoseconds();
      for (std::uint32_t i = 0; i < rounds; ++i, turn += 2) {
        int patience = 20'000;
        while (line.turn.load(std::memory_order_acquire) != turn) {
          if (--patience < 0) sched_yield();  // the other one has not begun, or others use its core
        }
        line.turn.store(turn + 1, std::memory_order_release);
      }
      const std::int64_t took = nanoseconds() - start;
      if (side == 0 && (k == 0 || took < best)) best = took;
    }
  });
  return static_cast<double>(best) / rounds;
}

/// What such a time means: "near", "far", or "busy" where other work was on the cores.
inline const char* placement_of(double round_trip_ns) {
  return round_trip_ns < 200 ? "near" : round_trip_ns < 2000 ? "far" : "busy";
}

/// Of round trips before and after a measurement: "near", or "near>far" where the cores have moved meanwhile.
inline std::string placement_between(double before, double after) {
  const std::string begun = placement_of(before), ended = placement_of(after);
  return begun == ended ? begun : begun + ">" + ended;
}

}  // namespace harness
