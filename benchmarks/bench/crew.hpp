// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "clock.hpp"
#include "cores.hpp"
#include "meeting.hpp"

namespace harness {

/// Runs work(member) on one thread for each core, each on its own, and returns when all are done. The calling thread
/// only waits. cores: as usable_core_numbers says.
template <class Work>
void run_on_cores(const std::vector<int>& cores, const Work& work) {
  std::vector<std::thread> threads;
  threads.reserve(cores.size());
  for (std::size_t k = 0; k < cores.size(); ++k) {
    threads.emplace_back([&, k] {
      stay_on(cores[k]);
      work(static_cast<int>(k));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace harness
