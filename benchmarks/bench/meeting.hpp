// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "clock.hpp"

namespace harness {

/// A barrier of the harness' own, so that what is measured does not depend on the barrier of a library. It may lie in
/// memory that processes share; zeroed memory is one at rest.
///
/// All ranks leave at about the same time: they see one line change, or wait for a time on the clock. Where there are
/// more ranks than cores a rank gives its core away at once. Not one for long waits: `Bell` is.
class Meeting {
 public:
  /// crowded: more ranks than cores. lead: nanoseconds between the arrival of the last one and the moment at which all
  /// leave together; 0: each as soon as it can, which the line's way from core to core makes differ by a tenth of a
  /// microsecond. False if somebody has called `give_up`: then not all have come, and none may use this any more.
  bool meet(std::uint32_t ranks, bool crowded, std::int64_t lead = 0) {
    const std::uint32_t turn = turn_.load(std::memory_order_relaxed);
    if (!come(turn, ranks, crowded, lead)) return false;
    if (lead > 0) {
      const std::int64_t start = start_.load(std::memory_order_relaxed);
      while (nanoseconds() < start) {}
    }
    return true;
  }

  /// Ends all waits.
  void give_up() { stopped_.store(1, std::memory_order_release); }
  bool given_up() const { return stopped_.load(std::memory_order_acquire) != 0; }

 private:
  bool come(std::uint32_t turn, std::uint32_t ranks, bool crowded, std::int64_t lead) {
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == ranks) {
      arrived_.store(0, std::memory_order_relaxed);
      if (lead > 0) start_.store(nanoseconds() + lead, std::memory_order_relaxed);
      turn_.store(turn + 1, std::memory_order_release);
      return true;
    }
    int patience = crowded ? 8 : 20'000;
    while (turn_.load(std::memory_order_acquire) == turn) {
      if (patience > 0) {
        --patience;
        relax();
      } else {
        if (given_up()) return false;
        sched_yield();
      }
    }
    return true;
  }

  static void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
  }

  alignas(128) std::atomic<std::uint32_t> arrived_;
  alignas(128) std::atomic<std::uint32_t> turn_;
  std::atomic<std::int64_t> start_;  ///< on the line of `turn_`, which says that it is set
  alignas(128) std::atomic<std::uint32_t> stopped_;
};

/// Somebody works, the others sleep until it is done: they look every 200 us, which takes no core from the work.
/// May lie in memory that processes share; zeroed memory is one at rest.
class Bell {
 public:
  std::uint32_t rings() const { return rings_.load(std::memory_order_acquire); }
  void ring() { rings_.fetch_add(1, std::memory_order_release); }
  /// rings: what `rings` said before the work began.
  void sleep_until_after(std::uint32_t rings) const {
    while (rings_.load(std::memory_order_acquire) == rings) nap(200'000);
  }

 private:
  alignas(128) std::atomic<std::uint32_t> rings_;
};

}  // namespace harness
