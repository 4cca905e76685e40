// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <cstdint>
#include <ctime>
#include <utility>

#include "meshwise/core/deadline.hpp"
#include "meshwise/core/yield_cost.hpp"

namespace meshwise::detail {

/// Tells the core that this is a spin loop.
inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// A clock for short times that takes a few nanoseconds to read: in steps of about a third of a nanosecond (x86), of
/// one, or of what the machine says.
class Stopwatch {
 public:
  Stopwatch() : start_(now()) {}

  /// Whether about so many nanoseconds have gone by, and how many: 0 if not.
  std::int64_t beyond(std::int64_t nanoseconds) const {
    const std::uint64_t steps = now() - start_;
    const auto least = static_cast<std::uint64_t>(nanoseconds);
#if defined(__x86_64__) || defined(__i386__)
    return steps > 3 * least ? static_cast<std::int64_t>(steps / 3) : 0;
#elif defined(__aarch64__)
    std::uint64_t frequency;
    asm("mrs %0, cntfrq_el0" : "=r"(frequency));
    const std::uint64_t passed = steps * 1000 / (frequency / 1'000'000 + 1);
    return passed > least ? static_cast<std::int64_t>(passed) : 0;
#else
    return steps > least ? static_cast<std::int64_t>(steps) : 0;
#endif
  }

 private:
  static std::uint64_t now() {
#if defined(__x86_64__) || defined(__i386__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    std::uint64_t steps;
    asm volatile("mrs %0, cntvct_el0" : "=r"(steps));
    return steps;
#else
    return static_cast<std::uint64_t>(monotonic_nanoseconds());
#endif
  }

  std::uint64_t start_;
};

/// How a waiting thread spends its time: it spins, then yields, then sleeps; where somebody wakes it, in slices.
///
/// Spinning covers skew between ranks that run at the same time (about 50 us); with more ranks than cores it would only
/// keep the awaited rank from running, so it ends after a few pauses. Sleeps start at 20 us and grow by a sixteenth: a
/// rank wakes at most about 6 % later than it could have, and a long wait costs almost no processor time. Where
/// yields let other programs run it does not yield: see YieldCost.
class Backoff {
 public:
  /// crowded: there are more ranks than cores. cost: what yields cost in this job; null: it is not known. quick: counts
  /// the yields of this rank, in all its waits, since the last slow one; null: this one does not judge.
  explicit Backoff(bool crowded, YieldCost* cost = nullptr, int* quick = nullptr)
      : looks_(!crowded), pauses_(crowded ? 8 : 1024), yields_(crowded ? 4096 : 512), cost_(cost), quick_(quick) {}

  /// Spends a little time. Says when it is time to look at what is rarely needed (clocks, flags, other ranks): never
  /// within the first pauses, then often enough that an event is seen within about a millisecond.
  bool pause() {
    ++count_;
    if (count_ <= pauses_) {
      relax();
      return looks_ && count_ == pauses_;
    }
    if (count_ <= pauses_ + yields_) return yield();
    std::timespec time{0, nanoseconds_};
    nanosleep(&time, nullptr);
    if (nanoseconds_ < 1'000'000) nanoseconds_ += nanoseconds_ / 16;
    return true;
  }

  /// Begins with yields.
  void skip_pauses() { count_ = pauses_; }

  /// Whether the time for spinning and yielding is over.
  bool tired() const { return count_ >= pauses_ + yields_; }

  /// How long to sleep now where somebody wakes this thread: nanoseconds, from 1 ms to 10 ms, which is what a call that
  /// is not heard costs.
  long slice() {
    const long now = slice_;
    if (slice_ < 10'000'000) slice_ = slice_ < 5'000'000 ? 2 * slice_ : 10'000'000;
    return now;
  }

 private:
  [[gnu::noinline]] bool yield() {
    if (cost_ == nullptr || !cost_->high()) {
      const Stopwatch watch;
      sched_yield();
      const std::int64_t taken = watch.beyond(YieldCost::slow);
      if (taken == 0) {
        if (quick_ != nullptr && *quick_ < YieldCost::few) ++*quick_;
        return count_ % 16 == 0;
      }
      if (quick_ == nullptr || std::exchange(*quick_, 0) >= YieldCost::few || cost_ == nullptr) return true;
      cost_->took(taken);
    }
    yields_ = 0;
    return true;
  }

  int count_ = 0;  // stops growing in practice: a sleep lasts at least 20 us, 2^31 of them half a day
  bool looks_;     ///< after the pauses; with more ranks than cores nobody has had a turn by then
  int pauses_;
  int yields_;
  YieldCost* cost_;
  int* quick_;
  long nanoseconds_ = 20'000;
  long slice_ = 1'000'000;
};

}  // namespace meshwise::detail
