// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <cstddef>
#include <vector>

namespace harness {

/// The cores that this thread may run on, by number.
inline std::vector<int> usable_core_numbers() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return {0};
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<std::size_t>(core), &usable)) cores.push_back(core);
  }
  return cores;
}

/// Keeps the calling thread on one core. False where that is not allowed.
inline bool stay_on(int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(core), &one);
  return sched_setaffinity(0, sizeof one, &one) == 0;
}

/// Keeps rank r of a job on core r modulo their number: where ranks are free to wander, two may share a core while
/// another one idles, and then switching is all that is measured. cores: from usable_core_numbers, of all of the job.
inline void stay_on_core_of_rank(int rank, const std::vector<int>& cores) {
  if (!cores.empty()) stay_on(cores[static_cast<std::size_t>(rank) % cores.size()]);
}

}  // namespace harness
