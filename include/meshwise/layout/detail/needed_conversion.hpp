// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "meshwise/layout/detail/conversion_verdict.hpp"

namespace meshwise::detail {

/// What To says about the axes on which From differs.
template <class From, class To, class... As>
consteval auto changes(list<As...>) {
  return distinct(joined<std::conditional_t<std::is_same_v<placement_on<From, As>, placement_on<To, As>>, list<>,
                                            list<placement_on<To, As>>>...>());
}
template <class... As>
consteval auto replicate_each(list<As...>) {
  return list<Replicate<axis_of<As>>...>{};
}
/// What has to leave before the axes of P can take their places in To: minor axes first.
template <class To, class P>
consteval auto departures() {
  if constexpr (std::is_same_v<placement_on<To, front<axes_of<P>>>, P>) {
    return list<>{};
  } else {
    return replicate_each(reversed(axes_of<P>{}));
  }
}
template <class From, class To, class... Ps>
consteval bool leads_to(list<Ps...>) {
  return std::is_same_v<conversion_verdict<From, Ps...>, accepted<To>>;
}
template <class... Ps>
consteval type<convert_<Ps...>> spelled(list<Ps...>) {
  return {};
}
template <class From, class To>
consteval auto remedy_for() {
  if constexpr (std::is_same_v<From, To>) {
    return type<convert_<>>{};  // asked for whenever a tensor is copied
  } else if constexpr (!std::is_same_v<grid_of<From>, grid_of<To>>) {
    return type<bring_both_to_one_mesh>{};
  } else {
    constexpr auto forward = changes<From, To>(axes_of_layout<To>{});
    constexpr auto backward = reversed(forward);
    if constexpr (leads_to<From, To>(forward)) {
      return spelled(forward);
    } else if constexpr (leads_to<From, To>(backward)) {
      return spelled(backward);
    } else {
      return []<class... Ps>(list<Ps...>, auto arrivals) {
        return spelled(joined<decltype(departures<To, Ps>())...>() + arrivals);
      }(placements_of<From>{}, forward);
    }
  }
}
/// The conversion that leads from one layout to another, spelled as a remedy.
template <class From, class To>
using needed_conversion = typename decltype(remedy_for<From, To>())::is;

}  // namespace meshwise::detail
