// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <atomic>

#include "meshwise/fabric/hold.hpp"

namespace meshwise::detail {

/// A latch for threads of one process.
class MutexLatch final : public Latch {
 public:
  MutexLatch() {
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&mutex_, &kind);
    pthread_mutexattr_destroy(&kind);
  }
  ~MutexLatch() override { pthread_mutex_destroy(&mutex_); }

  void lock() noexcept override {
    if (try_lock()) return;
    awaited_.fetch_add(1, std::memory_order_relaxed);
    pthread_mutex_lock(&mutex_);
    awaited_.fetch_sub(1, std::memory_order_relaxed);
  }
  bool try_lock() noexcept override { return pthread_mutex_trylock(&mutex_) == 0; }
  void unlock() noexcept override { pthread_mutex_unlock(&mutex_); }
  bool awaited() const noexcept override { return awaited_.load(std::memory_order_relaxed) != 0; }

 private:
  pthread_mutex_t mutex_;
  std::atomic<int> awaited_{0};
};

}  // namespace meshwise::detail
