// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "meshwise/core/detail/mix.hpp"
#include "meshwise/schedule/algorithm.hpp"
#include "meshwise/schedule/contract.hpp"

namespace meshwise {

/// How operands get from rank to rank. The values are stable.
enum class Way : std::uint8_t {
  memory,    ///< all ranks address all buffers
  foreign,   ///< they address each other's memory, but not all of the buffers: through windows, or by messages
  messages,  ///< send and receive
};

inline constexpr int way_count = static_cast<int>(Way::messages) + 1;

/// The short name of a way, such as "memory".
constexpr const char* way_name(Way way) {
  switch (way) {
    case Way::memory: return "memory";
    case Way::foreign: return "foreign";
    case Way::messages: return "messages";
  }
  return "unknown";
}

/// One line of a measured table: what to run for calls of some sizes.
struct SelectionRule {
  Operation operation = Operation::all_reduce;
  Way way = Way::memory;
  Algorithm algorithm = Algorithm::automatic;  ///< automatic: what the library would take without a table
  int ranks = 0;
  int lanes = 0;           ///< 0: as many as the model says
  std::uint64_t from = 0;  ///< bytes as in Question, 0 or a power of two
  std::uint64_t to = 0;    ///< the first that are not in the rule, a power of two; all ones: there are none

  /// Whether it says anything.
  constexpr bool decides() const { return algorithm != Algorithm::automatic; }

  friend constexpr bool operator==(const SelectionRule&, const SelectionRule&) = default;
};

/// A measured choice of algorithms, as all ranks of a job have it. Not what is read from a file (see
/// fabric/tuning/selection_file.hpp), but what remains of it for one fabric.
///
/// A value without pointers, which lies in the memory that ranks share. Empty: the model chooses.
///
/// A rule is for groups of exactly its number of ranks. A group for whose size an operation has no rule on its way
/// takes those of the nearest size below, but of no size below half of its own: what has been measured on 2 ranks says
/// nothing about 64. Where no rule covers a size in bytes the model chooses.
/// Rules of one operation, way and size of group do not overlap.
struct SelectionTable {
  static constexpr int most_rules = 512;
  static constexpr std::uint64_t no_end = ~std::uint64_t{0};

  int size = 0;
  SelectionRule rules[static_cast<std::size_t>(most_rules)];

  constexpr bool empty() const { return size == 0; }

  /// The size of group whose rules a group takes; 0: it has none.
  constexpr int group_size(Operation operation, Way way, int ranks) const {
    int best = 0;
    for (int k = 0; k < size; ++k) {
      const SelectionRule& rule = rules[k];
      if (rule.operation != operation || rule.way != way) continue;
      if (rule.ranks <= ranks && rule.ranks > best && rule.ranks >= ranks - rule.ranks) best = rule.ranks;
    }
    return best;
  }

  /// The rule for a call, if it decides anything; null if there is none.
  constexpr const SelectionRule* find(Operation operation, Way way, int ranks, std::uint64_t bytes) const {
    if (size == 0) return nullptr;
    const int measured = group_size(operation, way, ranks);
    for (int k = 0; measured > 0 && k < size; ++k) {
      const SelectionRule& rule = rules[k];
      if (rule.operation != operation || rule.way != way || rule.ranks != measured) continue;
      if (bytes >= rule.from && (bytes < rule.to || rule.to == no_end)) return rule.decides() ? &rule : nullptr;
    }
    return nullptr;
  }

  /// The sizes at which a rule decides, as a set of bits: bit k stands for bytes whose highest bit is number k - 1.
  constexpr std::uint64_t decided_sizes(Operation operation, Way way, int ranks) const {
    std::uint64_t set = 0;
    const int measured = size == 0 ? 0 : group_size(operation, way, ranks);
    for (int k = 0; measured > 0 && k < size; ++k) {
      const SelectionRule& rule = rules[k];
      if (rule.operation != operation || rule.way != way || rule.ranks != measured || !rule.decides()) continue;
      for (std::uint64_t bit = std::uint64_t{1}, bytes = 0; bit != 0 && bytes < rule.to; bit <<= 1) {
        if (bytes >= rule.from) set |= bit;
        bytes = bytes == 0 ? 1 : bytes << 1;
      }
    }
    return set;
  }

  /// Whether a set as above has these bytes.
  static constexpr bool has(std::uint64_t set, std::uint64_t bytes) {
    const auto bit = static_cast<int>(std::bit_width(bytes));
    return (set >> (bit < 64 ? bit : 63) & 1) != 0;
  }

  /// The same for tables with the same rules, on all machines.
  constexpr std::uint64_t signature() const {
    std::uint64_t hash = static_cast<std::uint64_t>(size);
    for (int k = 0; k < size; ++k) {
      const SelectionRule& rule = rules[k];
      for (const std::uint64_t word :
           {static_cast<std::uint64_t>(rule.operation), static_cast<std::uint64_t>(rule.way),
            static_cast<std::uint64_t>(rule.algorithm), static_cast<std::uint64_t>(rule.ranks),
            static_cast<std::uint64_t>(rule.lanes), rule.from, rule.to}) {
        hash = detail::mix(hash, word);
      }
    }
    return hash;
  }

  friend constexpr bool operator==(const SelectionTable& a, const SelectionTable& b) {
    if (a.size != b.size) return false;
    for (int k = 0; k < a.size; ++k) {
      if (a.rules[k] != b.rules[k]) return false;
    }
    return true;
  }
};

}  // namespace meshwise
