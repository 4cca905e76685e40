// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace meshwise::detail {

/// Wakes those who sleep until a rank does something, in this or in other processes.
///
/// The owner publishes, then rings: without sleepers that is one load of a line which it has at hand. Nothing orders
/// that load after what was published, so that a sleeper who has just come may be overlooked; it then sleeps to the end
/// of its slice.
/// A sleeper that is killed is counted for ever: rings cost a system call each from then on.
class Alarm {
 public:
  /// By the owner, after a change that others may wait for.
  [[gnu::always_inline]] void ring() {
    if (sleepers_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      wake();
  }

  /// By others: returns when ready() is true, after a ring, or after so many nanoseconds, less than a second.
  template <class Ready>
  [[gnu::noinline]] void sleep(long nanoseconds, const Ready& ready) {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    const std::uint32_t before = rings_.load(std::memory_order_seq_cst);
    if (!ready()) wait(before, nanoseconds);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }

 private:
#if defined(__linux__)
  static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

  [[gnu::noinline]] void wake() {
    rings_.fetch_add(1, std::memory_order_seq_cst);
    (void)syscall(SYS_futex, &rings_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
  void wait(std::uint32_t before, long nanoseconds) {
    const std::timespec slice{0, nanoseconds};
    (void)syscall(SYS_futex, &rings_, FUTEX_WAIT, before, &slice, nullptr, 0);
  }
#else
  void wake() { rings_.fetch_add(1, std::memory_order_seq_cst); }
  void wait(std::uint32_t before, long nanoseconds) {
    if (rings_.load(std::memory_order_seq_cst) != before) return;
    const std::timespec slice{0, nanoseconds < 1'000'000 ? nanoseconds : 1'000'000};
    nanosleep(&slice, nullptr);
  }
#endif

  std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<std::uint32_t> rings_{0};
};

}  // namespace meshwise::detail
