// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "meshwise/core/deadline.hpp"

namespace meshwise::detail {

/// What it costs to give a turn away (sched_yield), as the ranks of a job have found lately.
///
/// Among ranks a yield takes a microsecond. Beside other programs that keep the cores busy it is the dearest way to
/// wait: the scheduler takes the rest of its time slice from who yields, and the others use theirs up one after the
/// other, tens of milliseconds. Who sleeps instead gives nothing away, and runs soon after being woken. Sleeping costs
/// more than yields among ranks, though, so that it must not become a habit: it lasts as long as the yield took; twice
/// as long as before, up to a second, if yields prove as dear as soon as they are tried again.
///
/// A thread may also be interrupted while it yields, where its slice ends or its group of processes has used up its
/// share; sleeping would change nothing then. That hits one yield in a thousand, the other thing nearly every one: who
/// has yielded `few` times or more without it says nothing.
///
/// Ordering and lifetime: a hint, in memory that all ranks address; none of them waits for another one here.
class YieldCost {
 public:
  /// What is slower lets other programs run.
  static constexpr std::int64_t slow = 1'000'000;
  static constexpr int few = 8;

  /// Whether to sleep instead.
  [[gnu::always_inline]] bool high() {
    return until_.load(std::memory_order_relaxed) != 0 && still_high(monotonic_nanoseconds());
  }

  /// One that was slow has taken so many nanoseconds.
  void took(std::int64_t nanoseconds) { took(nanoseconds, monotonic_nanoseconds()); }

  /// The same at a given time.
  void took(std::int64_t nanoseconds, std::int64_t now) {
    std::int64_t until = until_.load(std::memory_order_relaxed);
    if (now < until) return;  // another rank has noticed it
    const std::int64_t before = span_.load(std::memory_order_relaxed);
    std::int64_t span = nanoseconds < longest ? nanoseconds : longest;
    const bool again = until != 0 && now - until < 2 * span;
    if (again && span < 2 * before) span = 2 * before < longest ? 2 * before : longest;
    if (until_.compare_exchange_strong(until, now + span, std::memory_order_relaxed)) {
      span_.store(span, std::memory_order_relaxed);
    }
  }

  [[gnu::noinline]] bool still_high(std::int64_t now) {
    std::int64_t until = until_.load(std::memory_order_relaxed);
    if (now < until) return true;
    if (now - until >= span_.load(std::memory_order_relaxed)) {
      until_.compare_exchange_strong(until, 0, std::memory_order_relaxed);
    }
    return false;
  }

 private:
  static constexpr std::int64_t longest = 1'000'000'000;

  std::atomic<std::int64_t> until_{0};  ///< 0: not lately
  std::atomic<std::int64_t> span_{0};   ///< how long it lasts, or lasted
};

}  // namespace meshwise::detail
