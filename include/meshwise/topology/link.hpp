// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace meshwise {

/// What it takes to send from one rank to another, and what a group of ranks shares on the way out.
///
/// The model is alpha-beta with a gap: a rank that sends (or receives) m messages of b bytes in all at the same time is
/// busy for latency + (m - 1) * per_message + b * per_byte; sending and receiving go on side by side.
/// Source: Hockney 1994 for latency and per_byte; the gap is LogP's g, Culler et al. 1993.
struct Link {
  double latency = 0;      ///< alpha: seconds for a message without data
  double per_byte = 0;     ///< beta: seconds per byte
  double per_message = 0;  ///< g: seconds for each further message in flight at the same rank

  /// Threads of one process, or processes that share memory: one cache line to a neighbour and back, and what a core
  /// copies from memory that another one has written.
  static constexpr Link shared_memory() { return {2e-7, 5e-11, 2e-8}; }

  /// A fast network between machines: 2 us and 12.5 GB/s.
  static constexpr Link network() { return {2e-6, 8e-11, 3e-7}; }

  friend constexpr bool operator==(const Link&, const Link&) = default;
};

}  // namespace meshwise
