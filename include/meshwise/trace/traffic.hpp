// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace meshwise {

/// What one rank has communicated on one communicator.
///
/// `volume` is what the operation is worth (collectives: the transition table; see collective/volume.hpp), whatever
/// the algorithm; summed over the ranks it is exact for uneven blocks too. `moved` and `messages` are counted where
/// bytes are copied or sent.
struct Traffic {
  std::uint64_t calls = 0;     ///< operations completed
  std::uint64_t messages = 0;  ///< pieces on other ranks touched, one per ordered pair and step
  std::uint64_t volume = 0;    ///< bytes that this rank must receive, by formula
  std::uint64_t moved = 0;     ///< bytes that this rank read from or wrote to other ranks' memory, or received

  constexpr Traffic& operator+=(const Traffic& other) {
    calls += other.calls;
    messages += other.messages;
    volume += other.volume;
    moved += other.moved;
    return *this;
  }
  friend constexpr Traffic operator+(Traffic a, const Traffic& b) { return a += b; }

  /// What happened between two snapshots, the later one first.
  friend constexpr Traffic operator-(const Traffic& later, const Traffic& earlier) {
    return {later.calls - earlier.calls, later.messages - earlier.messages, later.volume - earlier.volume,
            later.moved - earlier.moved};
  }
  friend constexpr bool operator==(const Traffic&, const Traffic&) = default;
};

}  // namespace meshwise
