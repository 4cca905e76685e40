// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "meshwise/core/error.hpp"
#include "meshwise/tensor/detail/verdicts.hpp"
#include "meshwise/tensor/detail/walk.hpp"

namespace meshwise {

namespace detail {

/// The verdict on the positions of D in T: a tensor of that dim alone, placed as T places it.
template <class T, class D, class Index>
consteval auto position_ids_verdict() {
  if constexpr (!contains<D, dims_of<typename T::dims>>) {
    return type<foreign_dim<D, typename T::dims>>{};
  } else {
    using others = without<D, dims_of<typename T::dims>>;
    using rest =
        decltype(without_known<partials_of<typename T::layout>>(placements_except<typename T::layout, others>{}));
    using layout = typename decltype(canonical_from<typename T::grid>(rest{}))::is;
    return type<accepted<Tensor<Index, Dims<D>, layout, typename T::space>>>{};
  }
}
template <AnyTensor T, class D, class Index>
using position_ids_of = typename decltype(position_ids_verdict<bare<T>, D, Index>())::is;

}  // namespace detail

/// The global index of every local index of a dim, as a tensor of integers that is placed as x places it: what learned
/// or rotary position embeddings of a sequence need that is cut by whatever rule.
///
///     lookup<seq>(table, position_ids<seq>(x))
///
/// Index: the integers. x: any layout, for its extent and placement of D. Result: Dims<D>, replicated over the axes
/// that do not cut D. Cost: local, one allocation. Errors: an extent with indices that Index cannot hold; refused if x
/// lacks D.
template <Dim D, std::integral Index = std::int32_t, AnyTensor T>
  requires detail::is_accepted<detail::position_ids_of<T, D, Index>>
[[nodiscard]] auto position_ids(const T& x) {
  const Extent& extent = x.extents()[detail::dim_index<D, T>];
  if (extent > 0 && !std::in_range<Index>(extent - 1)) {
    fail("position_ids", "indices of " + name_of<D>() + " that fit " + name_of<Index>(), std::to_string(extent),
         "name a larger integer: position_ids<D, std::int64_t>(x)", x.mesh().world().rank());
  }
  using Result = typename detail::position_ids_of<T, D, Index>::is;
  Result result(x.mesh(), {extent}, detail::uninitialised{});
  Index* out = detail::written(result);
  const Positions positions = x.template positions<D>();
  for (const Progression& p : positions.progressions()) {
    for (std::size_t i = 0; i < p.count; ++i) *out++ = static_cast<Index>(p.at(i));
  }
  return result;
}
template <Dim D, std::integral Index = std::int32_t, AnyTensor T>
  requires(!detail::is_accepted<detail::position_ids_of<T, D, Index>>)
[[nodiscard]] auto position_ids(const T& x) -> detail::position_ids_of<T, D, Index>;

}  // namespace meshwise
