// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "meshwise/core/deadline.hpp"
#include "meshwise/core/detail/packed_report.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/core/wait.hpp"

namespace meshwise::detail {

/// The first error of a group of ranks, once there is one. Any thread of any rank may set it; it stays for ever.
///
/// Lies in memory that all ranks address. A process that is killed while it writes keeps nobody waiting: each writer
/// has a place of its own, and the first to complete one wins.
class Poison {
 public:
  /// Whether the group is poisoned. Cheap: one load of a line that nobody writes before the end.
  bool set() const noexcept { return winner_.load(std::memory_order_acquire) != 0; }

  /// The same in the single total order, for the handshake between entering a call and leaving after an error.
  bool set_in_order() const noexcept { return winner_.load(std::memory_order_seq_cst) != 0; }

  /// Keeps the report unless there is one already. Whether it was the first.
  bool put(const Report& report) noexcept {
    if (set()) return false;
    std::uint32_t winner = taken_.fetch_add(1, std::memory_order_relaxed);
    if (winner < places) {
      reports_[winner].pack(report);
    } else {
      // One of those who came before is about to be done, unless all of them are dead.
      const std::int64_t start = monotonic_nanoseconds();
      Backoff backoff(true);
      while (!set() && monotonic_nanoseconds() - start < patience_nanoseconds) backoff.pause();
      winner = places;
    }
    std::uint32_t nobody = 0;
    return winner_.compare_exchange_strong(nobody, winner + 1, std::memory_order_seq_cst);
  }

  /// The first report; call it only when `set()`.
  Report cause() const {
    const std::uint32_t winner = winner_.load(std::memory_order_acquire);
    if (winner >= 1 && winner <= places) return reports_[winner - 1].unpack();
    Report report;
    report.code = Code::aborted;
    report.found = "that several ranks have failed at once";
    return report;
  }

 private:
  static constexpr std::uint32_t places = 3;
  static constexpr std::int64_t patience_nanoseconds = 20'000'000;

  std::atomic<std::uint32_t> winner_{0};  ///< 1 + the place of the first report
  std::atomic<std::uint32_t> taken_{0};
  PackedReport reports_[places];
};

}  // namespace meshwise::detail
