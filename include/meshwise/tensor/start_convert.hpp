// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "meshwise/tensor/convert.hpp"
#include "meshwise/tensor/detail/started.hpp"

namespace meshwise {

namespace detail {

template <class T, class... Ps>
consteval auto start_verdict() {
  using verdict = convert_verdict<T, Ps...>;
  if constexpr (!is_accepted<verdict>) {
    return type<verdict>{};
  } else if constexpr (!is_startable(plan<typename T::layout, typename verdict::is, typename T::dims>)) {
    return type<refused<because::conversion_is_not_one_collective_of_whole_runs<Ps...>,
                        try_<start_its_steps_one_by_one, or_<use_convert>>, typename T::layout>>{};
  } else {
    return type<verdict>{};
  }
}
template <AnyTensor T, class... Ps>
using start_convert_verdict = typename decltype(start_verdict<T, Ps...>())::is;

}  // namespace detail

/// Starts what `convert` does: `wait()` of the Pending that it returns gives the tensor that convert would have given.
///
/// Placements, x: as for convert, but the change has to be local or one collective: an all_reduce, reduce_scatter or
/// all_gather along any axes, an all_to_all along one, of dims that they cut contiguously. Cost: convert's, and one
/// allocation for what is in flight. A change that sends nothing, in a group of one too, is complete at once. An
/// all_reduce of an rvalue is done in place. Over all axes of a mesh at once the first one makes a communicator.
/// Ordering: collective, begun in program order on all ranks along the axes that change; what is started along the same
/// axes completes in this order, and convert along them first completes it. Progress is made as Pending says.
/// Lifetime: the Pending keeps what is read and written, so x may be dropped, and written too (it is copied first); it
/// does not outlive the mesh.
/// Errors: those of convert, at compile time and when waiting; refused for a change of several steps, and of a dim that
/// is cut by another rule.
template <Placement... Ps, AnyTensor T>
  requires detail::is_accepted<detail::start_convert_verdict<detail::bare<T>, Ps...>>
[[nodiscard]] auto start_convert(T&& x) {
  return detail::start_planned<typename detail::start_convert_verdict<detail::bare<T>, Ps...>::is>("start_convert",
                                                                                                   std::forward<T>(x));
}
template <Placement... Ps, AnyTensor T>
  requires(!detail::is_accepted<detail::start_convert_verdict<detail::bare<T>, Ps...>>)
[[nodiscard]] auto start_convert(T&& x) -> detail::start_convert_verdict<detail::bare<T>, Ps...>;

}  // namespace meshwise
