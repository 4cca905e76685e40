// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

namespace meshwise::detail {

/// Something that has operations under way.
class Backlog {
 public:
  /// Does for them what can be done without waiting, not even for others to leave after an error: whoever calls it is
  /// in the middle of something else, for which they may be waiting.
  virtual void advance_aside() = 0;

 protected:
  ~Backlog() = default;
};

/// What one rank has started and not completed, on all its communicators.
///
/// Whatever the rank waits for, the others may be waiting for these: two ranks that complete the same operations of two
/// communicators in opposite order would wait for each other for ever if waits did not go on with all of them. A wait
/// only goes on with what its own thread has started.
class Agenda {
 public:
  void add(Backlog* backlog) {
    const std::lock_guard<std::mutex> lock(mutex_);
    items_.push_back(Item{backlog, pthread_self()});
    size_.store(items_.size(), std::memory_order_relaxed);
  }

  void remove(const Backlog* backlog) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].backlog != backlog) continue;
      items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
    size_.store(items_.size(), std::memory_order_relaxed);
  }

  bool empty() const { return size_.load(std::memory_order_relaxed) == 0; }

  /// Goes on with everything. An error is thrown again when the operation that it belongs to is waited for.
  void advance() {
    std::array<Backlog*, 16> some{};  // the next ones have their turn at the next call
    std::size_t count = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const pthread_t self = pthread_self();
      for (std::size_t i = 0; i < items_.size() && count < some.size(); ++i) {
        const Item& item = items_[(first_ + i) % items_.size()];
        if (pthread_equal(item.thread, self) != 0) some[count++] = item.backlog;
      }
      first_ = items_.empty() ? 0 : (first_ + count) % items_.size();
    }
    for (std::size_t i = 0; i < count; ++i) {
      try {
        some[i]->advance_aside();
      } catch (...) {
        remove(some[i]);
      }
    }
  }

 private:
  struct Item {
    Backlog* backlog;
    pthread_t thread;
  };

  std::mutex mutex_;
  std::atomic<std::size_t> size_{0};
  std::vector<Item> items_;
  std::size_t first_ = 0;
};

}  // namespace meshwise::detail
