// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "meshwise/tensor/convert.hpp"

namespace meshwise {

namespace detail {

template <class Old, class New, class... Ds>
consteval auto renamed_dims(list<Ds...>) {
  return list<std::conditional_t<std::is_same_v<Ds, Old>, New, Ds>...>{};
}
template <class Old, class New, class P>
consteval auto renamed_placement() {
  if constexpr (placement_traits<P>::shard) {
    if constexpr (std::is_same_v<typename placement_traits<P>::dim, Old>) {
      return list<shard_over<New, entries_of<P>>>{};
    } else {
      return list<P>{};
    }
  } else {
    return list<P>{};
  }
}

template <class T, class Old, class New>
consteval auto rename_verdict() {
  using dims = dims_of<typename T::dims>;
  if constexpr (!contains<Old, dims>) {
    return type<refused<because::dim_not_in_the_tensor<Old>, try_<name_a_dim_of_this_tensor>, typename T::dims>>{};
  } else if constexpr (contains<New, dims>) {
    return type<refused<because::dim_repeated<New>, try_<choose_a_dim_that_the_tensor_lacks>, typename T::dims>>{};
  } else {
    return []<class... Ps>(list<Ps...>) {
      using layout = typename decltype(canonical_from<typename T::grid>(
          joined<decltype(renamed_placement<Old, New, Ps>())...>()))::is;
      using renamed = dims_from<decltype(renamed_dims<Old, New>(dims{}))>;
      return type<accepted<Tensor<typename T::element, renamed, layout, typename T::space>>>{};
    }(placements_of<typename T::layout>{});
  }
}
template <class T, class Old, class New>
using rename_of = typename decltype(rename_verdict<operand<T>, Old, New>())::is;

}  // namespace detail

/// The same tensor with dim Old called New: `rename<seq, key<seq>>(k)`. Cost: none; storage is shared.
template <Dim Old, Dim New, AnyTensor T>
  requires detail::is_accepted<detail::rename_of<T, Old, New>>
[[nodiscard]] auto rename(const T& x) {
  using Result = typename detail::rename_of<T, Old, New>::is;
  return Result(x.mesh(), x.extents(), x.storage(), x.offset());
}
template <Dim Old, Dim New, AnyTensor T>
  requires(!detail::is_accepted<detail::rename_of<T, Old, New>>)
[[nodiscard]] auto rename(const T& x) -> detail::rename_of<T, Old, New>;

}  // namespace meshwise
