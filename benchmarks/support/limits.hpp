// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "copy_around.hpp"
#include "meshwise/core/memory.hpp"
#include "meshwise/core/wait.hpp"
#include "meshwise/fabric/memory/cores.hpp"
#include "team.hpp"

namespace bench {

/// What the memory can do: one thread on each core, at most one per rank, copies a large array of its own.
class CopyLimit {
 public:
  static constexpr std::size_t bytes = std::size_t{64} << 20;

  /// ranks: of the team. heap: of this rank. Ranks that do not copy need no arrays.
  CopyLimit(meshwise::Heap& heap, int rank, int ranks) : copiers_(std::min(ranks, meshwise::detail::usable_cores())) {
    if (rank >= copiers_) return;
    from_ = heap.allocate(bytes);
    to_ = heap.allocate(bytes);
    std::memset(from_.data(), 1, bytes);
    std::memset(to_.data(), 2, bytes);
  }

  /// Bytes read and written per second, all threads together.
  double rate(Team& team, meshwise::Communicator& world) {
    const double seconds = team.time(
        world, 1, [&] { harness::copy_around(to_.data(), from_.data(), bytes); }, copiers_);
    return 2.0 * bytes * copiers_ / seconds;
  }

 private:
  int copiers_;
  meshwise::Storage from_, to_;
};

/// How far the cores of ranks 0 and 1 are from each other: nanoseconds for a line to go there and back.
///
/// Virtual machines move their cores about; timings compare only while this stays the same.
class RoundTrip {
 public:
  /// The shortest mean of several series, so that a thread that was not running does not count. On all ranks.
  double nanoseconds(Team& team, meshwise::Communicator& world) {
    double best = 0;
    for (int series = 0; series < 5 && world.size() > 1; ++series) {
      if (world.rank() == 0) line_ = 0;
      const double seconds = team.time(
          world, 1, [&] { bounce(world.rank()); }, 2);
      const double mean = seconds * 1e9 / rounds;
      if (series == 0 || mean < best) best = mean;
    }
    return best;
  }

 private:
  static constexpr std::uint32_t rounds = 2000;

  void bounce(int side) {
    const std::uint32_t mine = side == 0 ? 0 : 1;
    for (std::uint32_t i = 0; i < rounds; ++i) {
      const std::uint32_t turn = 2 * i + mine;
      int patience = 20'000;
      while (line_.load(std::memory_order_acquire) != turn) {
        if (--patience > 0) continue;
        sched_yield();  // the other one may be waiting for this core
      }
      line_.store(turn + 1, std::memory_order_release);
    }
  }

  alignas(128) std::atomic<std::uint32_t> line_{0};
  [[maybe_unused]] std::byte rest_[128 - sizeof(std::atomic<std::uint32_t>)]{};
};

/// What round trips before and after a measurement mean: the cores of the first ranks are near or far, or were busy with
/// other work.
inline std::string placement(double before, double after) {
  const auto word = [](double ns) { return ns < 200 ? "near" : ns < 2000 ? "far" : "busy"; };
  const std::string begun = word(before), ended = word(after);
  return begun == ended ? begun : begun + ", then " + ended;
}

}  // namespace bench
