// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>
#include <unistd.h>

#include <cstdio>

namespace meshwise::detail {

/// The cores that this process may keep busy: its affinity mask, and the quota of its control group if there is one.
/// At least 1.
inline int usable_cores() {
  long cores = 0;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  // The call fails where there are more processors than the mask has bits.
  cores = sched_getaffinity(0, sizeof(mask), &mask) == 0 ? CPU_COUNT(&mask) : sysconf(_SC_NPROCESSORS_ONLN);
  if (std::FILE* file = std::fopen("/sys/fs/cgroup/cpu.max", "r")) {
    long quota = 0;
    long period = 0;
    // "max PERIOD" where there is no limit
    if (std::fscanf(file, "%ld %ld", &quota, &period) == 2 && quota > 0 && period > 0) {
      const long share = (quota + period - 1) / period;
      if (share < cores) cores = share;
    }
    std::fclose(file);
  }
  return cores < 1 ? 1 : static_cast<int>(cores);
}

}  // namespace meshwise::detail
