// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "meshwise/layout/detail/plan_between.hpp"
#include "meshwise/layout/layout_plan.hpp"

namespace meshwise {

namespace detail {

/// The dims that two layouts shard.
template <class From, class To>
using sharded_dims = decltype(dims_sharded_by(placements_of<From>{} + placements_of<To>{}));

template <class From, class To, class DimList>
consteval LayoutPlan make_plan() {
  return plan_between(layout_value<From, DimList>, layout_value<To, DimList>);
}

}  // namespace detail

/// A layout on the same mesh as another one.
template <class L, class Other>
concept OnTheMeshOf = std::is_same_v<detail::grid_of<L>, detail::grid_of<Other>>;

/// How a tensor in layout From becomes one in layout To: the steps and what they cost, see LayoutPlan.
///
/// DimList: the dims of the tensor, `Dims<...>`, which number the dims of the steps; without it those that one of the
/// two layouts shards, in the order in which they stand in From, then To. A tensor that has a dim may be cut along it
/// for the time of the change even where neither layout shards it.
template <AnyLayout From, OnTheMeshOf<From> To, class DimList = detail::sharded_dims<From, To>>
  requires DimsFor<DimList, From> && DimsFor<DimList, To>
inline constexpr LayoutPlan plan = detail::make_plan<From, To, DimList>();

}  // namespace meshwise
