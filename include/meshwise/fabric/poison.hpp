// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <mutex>
#include <utility>

#include "meshwise/core/error.hpp"

namespace meshwise::detail {

/// The first error of a group of ranks, once there is one. Any thread may set it; it stays for ever.
class Poison {
 public:
  /// Whether the group is poisoned. Cheap: one load of a line that nobody writes before the end.
  bool set() const noexcept { return set_.load(std::memory_order_acquire); }

  /// The same in the single total order, for the handshake between entering a call and leaving after an error.
  bool set_in_order() const noexcept { return set_.load(std::memory_order_seq_cst); }

  /// Keeps the report unless there is one already.
  void put(const Report& report) noexcept {
    try {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (set_.load(std::memory_order_relaxed)) return;
      cause_ = report;
    } catch (...) {
      // Without memory for the text the code alone must do.
      cause_.code = report.code;
    }
    set_.store(true, std::memory_order_seq_cst);
  }

  /// The first report; call it only when `set()`.
  Report cause() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return cause_;
  }

 private:
  mutable std::mutex mutex_;
  std::atomic<bool> set_{false};
  Report cause_;
};

}  // namespace meshwise::detail
