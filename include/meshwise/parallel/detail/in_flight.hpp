// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>

#include "meshwise/collective/pending.hpp"

namespace meshwise::detail {

/// A value that is not there, on its way, or there.
template <class T>
class InFlight {
 public:
  bool empty() const { return !there_ && !pending_.pending(); }

  void start(Pending<T> pending) {
    there_.reset();
    pending_ = std::move(pending);
  }
  void set(T value) { there_.emplace(std::move(value)); }

  /// The value, after waiting for it. Not if empty.
  const T& get() {
    if (pending_.pending()) there_.emplace(pending_.wait());
    return *there_;
  }
  T take() {
    get();
    T result = std::move(*there_);
    there_.reset();
    return result;
  }
  /// Drops it, after waiting for what is on its way.
  void reset() {
    if (pending_.pending()) (void)pending_.wait();
    there_.reset();
  }
  /// Goes on with it if it is on its way; what was sent is let go when it has arrived.
  void test() {
    if (pending_.pending() && pending_.test()) there_.emplace(pending_.wait());
  }

 private:
  Pending<T> pending_;
  std::optional<T> there_;
};

}  // namespace meshwise::detail
