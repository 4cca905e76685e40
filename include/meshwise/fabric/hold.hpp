// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace meshwise::detail {

/// What a rank's threads take in turn before they work on an endpoint: the program's, and the one that goes on with
/// what the program has started. Recursive. Programs that use endpoints see no more of it than this.
class Latch {
 public:
  Latch(const Latch&) = delete;
  Latch& operator=(const Latch&) = delete;
  virtual ~Latch() = default;

  virtual void lock() noexcept = 0;
  virtual bool try_lock() noexcept = 0;
  virtual void unlock() noexcept = 0;

  /// Whether a thread waits for its turn: mutexes do not see to it that it gets one.
  virtual bool awaited() const noexcept = 0;

 protected:
  Latch() = default;
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
