// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "meshwise/tensor/reductions.hpp"

namespace meshwise {

namespace detail {

template <class T, class... Ds>
consteval auto mean_verdict() {
  using verdict = reduce_of<T, Sum, Ds...>;
  using E = typename T::element;
  if constexpr (is_accepted<verdict> && !FloatElement<E>) {
    return type<refused<because::mean_of_integers_is_not_an_integer<E>, try_<sum_and_divide_with_the_rounding_you_want>,
                        typename T::layout>>{};
  } else {
    return type<verdict>{};
  }
}
template <class T, class... Ds>
using mean_of = typename decltype(mean_verdict<operand<T>, Ds...>())::is;

}  // namespace detail

/// The mean over the named dims: their sum, divided by the number of elements of the whole tensor that it adds up.
///
/// x: any layout, Partial sums included. Result: x without those dims; axes that sharded them are `Partial`: each rank
/// holds its share of the mean, so uneven and empty parts weigh what they hold and there is no average of averages. A
/// dim of no elements gives NaN (0 / 0). Cost: one pass, one allocation, no communication; narrow floats are divided in
/// float, before the one rounding. Errors: refused for integers and for a Partial of another reduction than Sum.
template <Dim... Ds, AnyTensor T>
  requires detail::is_accepted<detail::mean_of<T, Ds...>>
[[nodiscard]] auto mean(const T& x) {
  using A = accumulate_t<typename T::element>;
  double count = 1;
  ((count *= static_cast<double>(x.template extent<Ds>())), ...);
  return detail::reduce_local<Sum, typename detail::mean_of<T, Ds...>::is>(
      x, [n = static_cast<A>(count)](A total) { return total / n; });
}
template <Dim... Ds, AnyTensor T>
  requires(!detail::is_accepted<detail::mean_of<T, Ds...>>)
[[nodiscard]] auto mean(const T& x) -> detail::mean_of<T, Ds...>;

}  // namespace meshwise
