// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <atomic>

namespace meshwise::detail {

/// What a rank's threads take in turn before they work on an endpoint: the program's, and the one that goes on with
/// what the program has started. Recursive.
class Latch {
 public:
  Latch() {
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&mutex_, &kind);
    pthread_mutexattr_destroy(&kind);
  }
  Latch(const Latch&) = delete;
  Latch& operator=(const Latch&) = delete;
  ~Latch() { pthread_mutex_destroy(&mutex_); }

  [[gnu::noinline]] void lock() noexcept {
    if (try_lock()) return;
    awaited_.fetch_add(1, std::memory_order_relaxed);
    pthread_mutex_lock(&mutex_);
    awaited_.fetch_sub(1, std::memory_order_relaxed);
  }
  [[gnu::noinline]] bool try_lock() noexcept { return pthread_mutex_trylock(&mutex_) == 0; }
  [[gnu::noinline]] void unlock() noexcept { pthread_mutex_unlock(&mutex_); }

  /// Whether a thread waits for its turn: mutexes do not see to it that it gets one.
  bool awaited() const { return awaited_.load(std::memory_order_relaxed) != 0; }

 private:
  pthread_mutex_t mutex_;
  std::atomic<int> awaited_{0};
};

/// Holds a latch, where there is one.
class Hold {
 public:
  [[gnu::always_inline]] explicit Hold(Latch* latch) : latch_(latch) {
    if (latch_ != nullptr) [[unlikely]]
      latch_->lock();
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  [[gnu::always_inline]] ~Hold() {
    if (latch_ != nullptr) [[unlikely]]
      latch_->unlock();
  }

 private:
  Latch* latch_;
};

/// Holds a latch unless another thread does.
class TryHold {
 public:
  explicit TryHold(Latch* latch) : latch_(latch), held_(latch == nullptr || latch->try_lock()) {}
  TryHold(const TryHold&) = delete;
  TryHold& operator=(const TryHold&) = delete;
  ~TryHold() {
    if (held_ && latch_ != nullptr) latch_->unlock();
  }
  explicit operator bool() const { return held_; }

 private:
  Latch* latch_;
  bool held_;
};

}  // namespace meshwise::detail
