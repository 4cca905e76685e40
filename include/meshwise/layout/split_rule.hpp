// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "meshwise/layout/axis.hpp"

namespace meshwise {

/// How an axis of n ranks cuts what the axes major to it in the dim have left, a list of m indices in order.
enum class SplitRule : std::uint8_t {
  contiguous,  ///< part k begins at floor(k m / n); adjacent contiguous axes cut together, over their ordered product
  chunked,     ///< parts of ceil(m / n), the last ones shorter or empty: what many other systems do
  zigzag,      ///< 2 n parts as contiguous cuts them; rank k holds parts k and 2n - 1 - k, in this order
  striped,     ///< every n-th index, beginning with the k-th
  counted,     ///< as many indices as the data dictates: n counts with the sum m, given at run time
};

constexpr const char* split_rule_name(SplitRule rule) {
  constexpr const char* names[] = {"contiguous", "chunked", "zigzag", "striped", "counted"};
  return names[static_cast<int>(rule)];
}

/// Wrappers that give the axis of a Shard another rule than `contiguous`: `Shard<seq, Zigzag<cp>, tp>`.
template <Axis A>
struct Chunked {};
template <Axis A>
struct Zigzag {};
template <Axis A>
struct Striped {};
/// Only as the first axis of a Shard: counts are of the whole dim.
template <Axis A>
struct Counted {};

namespace detail {

template <Axis A, SplitRule cut_by>
struct entry_of {
  static constexpr bool is_entry = true;
  static constexpr SplitRule rule = cut_by;
  using axis = A;
};
/// What an entry of a Shard says: its axis and rule.
template <class E>
struct entry_traits {
  static constexpr bool is_entry = false;
};
template <Axis A>
struct entry_traits<A> : entry_of<A, SplitRule::contiguous> {};
template <Axis A>
struct entry_traits<Chunked<A>> : entry_of<A, SplitRule::chunked> {};
template <Axis A>
struct entry_traits<Zigzag<A>> : entry_of<A, SplitRule::zigzag> {};
template <Axis A>
struct entry_traits<Striped<A>> : entry_of<A, SplitRule::striped> {};
template <Axis A>
struct entry_traits<Counted<A>> : entry_of<A, SplitRule::counted> {};

/// The bare axis of an entry.
template <class E>
using axis_of = typename entry_traits<E>::axis;

}  // namespace detail

/// What may stand in a Shard: an axis, or one wrapped in a split rule.
template <class E>
concept ShardEntry = detail::entry_traits<E>::is_entry;

}  // namespace meshwise
