// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <vector>

#include "meshwise/core/deadline.hpp"
#include "meshwise/fabric/hold.hpp"

namespace meshwise::detail {

/// Something that has operations under way.
class Backlog {
 public:
  /// Does for them what can be done without waiting, not even for others to leave after an error: whoever calls it is
  /// in the middle of something else, for which they may be waiting. Returns whether anything has come about.
  virtual bool advance_aside() = 0;

 protected:
  ~Backlog() = default;
};

/// What one rank has started and not completed, on all its communicators.
///
/// Whatever the rank waits for, the others may be waiting for these: two ranks that complete the same operations of two
/// communicators in opposite order would wait for each other for ever if waits did not go on with all of them. A wait
/// only goes on with what its own thread has started; a progress thread goes on with everything.
class Agenda {
 public:
  /// driven: there is a progress thread (see ProgressThread), so that endpoints need latches.
  explicit Agenda(bool driven = false) : driven_(driven) {
    pthread_condattr_t kind;
    pthread_condattr_init(&kind);
    pthread_condattr_setclock(&kind, CLOCK_MONOTONIC);
    pthread_cond_init(&changed_, &kind);
    pthread_condattr_destroy(&kind);
  }
  Agenda(const Agenda&) = delete;
  Agenda& operator=(const Agenda&) = delete;
  ~Agenda() { pthread_cond_destroy(&changed_); }

  bool driven() const { return driven_; }

  /// latch: what must be held to go on with it, and is held here and at its removal; null without a progress thread.
  void add(Backlog* backlog, Latch* latch = nullptr) {
    const std::lock_guard<std::mutex> lock(mutex_);
    items_.push_back(Item{backlog, latch, pthread_self()});
    size_.store(items_.size(), std::memory_order_relaxed);
    news_ = true;
    if (asleep_) pthread_cond_signal(&changed_);
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

  bool empty() const { return size() == 0; }
  std::size_t size() const { return size_.load(std::memory_order_relaxed); }

  /// Goes on with what this thread has started. An error is thrown again when the operation that it belongs to is
  /// waited for.
  void advance() {
    std::array<Item, 16> some{};  // the next ones have their turn at the next call
    std::size_t count = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const pthread_t self = pthread_self();
      std::size_t seen = 0;
      for (; seen < items_.size() && count < some.size(); ++seen) {
        const Item& item = items_[(first_ + seen) % items_.size()];
        if (pthread_equal(item.thread, self) != 0) some[count++] = item;
      }
      first_ = items_.empty() ? 0 : (first_ + seen) % items_.size();
    }
    for (std::size_t i = 0; i < count; ++i) {
      const TryHold hold(some[i].latch);
      if (hold) advance(some[i].backlog);
    }
  }

  /// Goes once through everything, whoever has started it, as far as no other thread is at it. Returns whether anything
  /// has come about.
  bool advance_all() {
    bool progress = false;
    for (std::size_t turn = size(); turn > 0; --turn) {
      Item item;
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (items_.empty()) break;
        next_ = (next_ + 1) % items_.size();
        item = items_[next_];
        // Held before it can be removed: what is removed may be destroyed.
        if (item.latch == nullptr || item.latch->awaited() || !item.latch->try_lock()) continue;
      }
      progress = advance(item.backlog) || progress;
      item.latch->unlock();
    }
    return progress;
  }

  enum class Woken { time, news, end };

  /// For the progress thread: sleeps until something is added or the end has come, and while there is anything at all
  /// on the agenda, so many nanoseconds at most.
  Woken sleep(std::int64_t nanoseconds) {
    std::unique_lock<std::mutex> lock(mutex_);
    const std::int64_t end = monotonic_nanoseconds() + nanoseconds;
    const std::timespec until{static_cast<std::time_t>(end / 1'000'000'000), static_cast<long>(end % 1'000'000'000)};
    asleep_ = true;
    bool over = false;
    while (!ended_ && !news_ && !over) {
      if (items_.empty()) {
        pthread_cond_wait(&changed_, mutex_.native_handle());
      } else {
        over = pthread_cond_timedwait(&changed_, mutex_.native_handle(), &until) != 0;
      }
    }
    asleep_ = false;
    const bool news = news_;
    news_ = false;
    return ended_ ? Woken::end : news ? Woken::news : Woken::time;
  }

  /// Ends the sleep of the progress thread, this one and all later ones.
  void end() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
    pthread_cond_signal(&changed_);
  }

 private:
  struct Item {
    Backlog* backlog = nullptr;
    Latch* latch = nullptr;
    pthread_t thread{};
  };

  bool advance(Backlog* backlog) {
    try {
      return backlog->advance_aside();
    } catch (...) {
      remove(backlog);
      return true;
    }
  }

  const bool driven_;
  std::mutex mutex_;
  pthread_cond_t changed_;
  std::atomic<std::size_t> size_{0};
  std::vector<Item> items_;
  std::size_t first_ = 0;  ///< where the next wait begins
  std::size_t next_ = 0;   ///< where the progress thread is
  bool asleep_ = false;    ///< the progress thread
  bool news_ = false;      ///< something was added since it slept last
  bool ended_ = false;
};

}  // namespace meshwise::detail
