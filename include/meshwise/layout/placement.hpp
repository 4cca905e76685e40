// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "meshwise/core/reduction.hpp"
#include "meshwise/layout/axis.hpp"
#include "meshwise/layout/detail/list.hpp"
#include "meshwise/layout/dim.hpp"
#include "meshwise/layout/split_rule.hpp"

namespace meshwise {

/// Every rank along the axis holds the whole value, bit for bit the same.
template <Axis A>
struct Replicate {};

/// The dimension is cut over the axes, the first one major: each rank along them holds one part.
///
/// Part k of n over N elements begins at floor(k N / n), over the ordered product of the axes and always from the
/// global extent, so that nested and flattened splits are the same even when uneven. An axis wrapped in `Chunked`,
/// `Zigzag`, `Striped` or `Counted` cuts what the axes before it have left by that rule instead. Parts may be empty.
template <Dim D, ShardEntry... Entries>
struct Shard {};

/// The value is the reduction, over the ranks along the axis, of what each of them holds.
template <Axis A, Reduction Op = Sum>
struct Partial {};

namespace detail {

/// What a placement is about: its kind, dimension, axes (in order) and reduction.
template <class P>
struct placement_traits {
  static constexpr bool is_placement = false;
  using axes = list<>;
  using entries = list<>;
};
template <Axis A>
struct placement_traits<Replicate<A>> {
  static constexpr bool is_placement = true, replicate = true, shard = false, partial = false;
  using axes = list<A>;
  using entries = list<A>;
};
template <Dim D, ShardEntry... Entries>
struct placement_traits<Shard<D, Entries...>> {
  static constexpr bool is_placement = true, replicate = false, shard = true, partial = false;
  using axes = list<axis_of<Entries>...>;
  using entries = list<Entries...>;
  using dim = D;
};
template <Axis A, Reduction Op>
struct placement_traits<Partial<A, Op>> {
  static constexpr bool is_placement = true, replicate = false, shard = false, partial = true;
  using axes = list<A>;
  using entries = list<A>;
  using op = Op;
};

/// The bare axes of a placement, in order.
template <class P>
using axes_of = typename placement_traits<P>::axes;
/// The axes of a placement as they are written, wrapped in their split rules.
template <class P>
using entries_of = typename placement_traits<P>::entries;

template <Dim D, ShardEntry... Entries>
consteval type<Shard<D, Entries...>> make_shard(list<Entries...>) {
  return {};
}
template <Dim D, class EntryList>
using shard_over = typename decltype(make_shard<D>(EntryList{}))::is;

}  // namespace detail

/// A placement: Replicate, Shard or Partial.
template <class P>
concept Placement = detail::placement_traits<P>::is_placement;

}  // namespace meshwise
