// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace meshwise {

/// What a change of placements does. The first five communicate, the others are local.
enum class Transition : std::uint8_t {
  all_reduce,      ///< Partial -> Replicate
  reduce_scatter,  ///< Partial -> Shard
  all_gather,      ///< Shard -> Replicate
  all_to_all,      ///< Shard of one dim -> Shard of another
  exchange,        ///< Shard -> Shard by another rule, or any change of several axes: each rank pulls what it lacks
  slice,           ///< Replicate -> Shard: keep the own part
  keep_first,      ///< Replicate -> Partial: coordinate 0 keeps the value, the others hold the identity
  pad,             ///< Shard -> Partial: the identity outside the own part
  equal,           ///< nothing
};

constexpr const char* transition_name(Transition t) {
  constexpr const char* names[] = {"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "exchange",
                                   "slice",      "keep_first",     "pad",        "equal"};
  return names[static_cast<int>(t)];
}

constexpr bool communicates(Transition t) { return t <= Transition::exchange; }

/// Bytes that all `n` ranks of the axis together receive; divide by n for the mean per rank.
///
/// bytes: of the tensor as held when replicated on this axis. Exact for any split, except all_to_all and exchange,
/// whose exact value depends on both splits; here it is the even one, (n-1)/n of the bytes. See also
/// plan_volume.
constexpr double transition_volume(Transition t, int n, double bytes) {
  switch (t) {
    case Transition::all_reduce: return 2.0 * (n - 1) * bytes;
    case Transition::reduce_scatter:
    case Transition::all_gather: return (n - 1.0) * bytes;
    case Transition::all_to_all:
    case Transition::exchange: return (n - 1.0) / n * bytes;
    default: return 0.0;
  }
}

}  // namespace meshwise
