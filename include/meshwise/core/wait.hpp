// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <ctime>

namespace meshwise::detail {

/// Tells the core that this is a spin loop.
inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// How a waiting thread spends its time: it spins, then yields, then sleeps; where somebody wakes it, in slices.
///
/// Spinning covers skew between ranks that run at the same time (about 50 us); with more ranks than cores it would only
/// keep the awaited rank from running, so it ends after a few pauses. Sleeps start at 20 us and grow by a sixteenth: a
/// rank wakes at most about 6 % later than it could have, and a long wait costs almost no processor time.
class Backoff {
 public:
  /// crowded: there are more ranks than cores.
  explicit Backoff(bool crowded) : looks_(!crowded), pauses_(crowded ? 8 : 1024), yields_(crowded ? 4096 : 512) {}

  /// Spends a little time. Says when it is time to look at what is rarely needed (clocks, flags, other ranks): never
  /// within the first pauses, then often enough that an event is seen within about a millisecond.
  bool pause() {
    ++count_;
    if (count_ <= pauses_) {
      relax();
      return looks_ && count_ == pauses_;
    }
    if (count_ <= pauses_ + yields_) {
      sched_yield();
      return count_ % 16 == 0;
    }
    std::timespec time{0, nanoseconds_};
    nanosleep(&time, nullptr);
    if (nanoseconds_ < 1'000'000) nanoseconds_ += nanoseconds_ / 16;
    return true;
  }

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
  int count_ = 0;  // stops growing in practice: a sleep lasts at least 20 us, 2^31 of them half a day
  bool looks_;     ///< after the pauses; with more ranks than cores nobody has had a turn by then
  int pauses_;
  int yields_;
  long nanoseconds_ = 20'000;
  long slice_ = 1'000'000;
};

}  // namespace meshwise::detail
