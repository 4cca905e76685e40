// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "meshwise/core/detail/pack_loops.hpp"
#include "meshwise/core/math.hpp"
#include "meshwise/tensor/reductions.hpp"
#include "meshwise/tensor/value.hpp"

namespace meshwise {

namespace detail {

/// The verdict on adding up the squares of all elements: a double, owed over whatever shards x.
template <class T>
consteval auto squares_verdict() {
  if constexpr (!is_accepted<map_of<T>>) {
    return type<map_of<T>>{};
  } else {
    return []<class... Ds>(list<Ds...>) {
      using layout = typename decltype(reduced_layout<typename T::layout, Sum>(list<Ds...>{}))::is;
      return type<accepted<Tensor<double, Dims<>, layout, typename T::space>>>{};
    }(dims_of<typename T::dims>{});
  }
}
/// The squares of some elements, added up in an order that depends on their number only.
template <class E>
double local_squares(std::span<const E> elements) {
  const E* const in = elements.data();
  const std::size_t n = elements.size();
  double sum = 0;
  in_packs([&](auto width) {
    sum = sum_packs<double>(
        width, n, [](const auto& v) { return v * v; }, in);
  });
  return sum;
}
/// Those of the local piece.
template <AnyTensor T>
double local_squares(const T& x) {
  return local_squares(x.local());
}

template <class T>
using squares_of = typename decltype(squares_verdict<operand<T>>())::is;

}  // namespace detail

/// The sum of the squares of the distinct elements of a tensor, in double, before it is added up over the ranks.
///
/// x: any layout without a Partial. Result: a number that is `Partial` over the axes that shard x and replicated over
/// the others, so that an element that several ranks hold counts once. Cost: one pass, no communication. The order of
/// additions depends on the local extents only. Squares beyond 1e308 are infinite. Errors: refused for a Partial: the
/// norm of a sum needs the sum.
template <AnyTensor T>
  requires detail::is_accepted<detail::squares_of<T>>
[[nodiscard]] auto sum_of_squares(const T& x) {
  typename detail::squares_of<T>::is result(x.mesh(), {}, detail::uninitialised{});
  *detail::written(result) = detail::local_squares(x);
  return result;
}
template <AnyTensor T>
  requires(!detail::is_accepted<detail::squares_of<T>>)
[[nodiscard]] auto sum_of_squares(const T& x) -> detail::squares_of<T>;

/// The Euclidean norm of a whole tensor, over its distinct elements.
///
/// x: any layout without a Partial. Cost: one pass, and an all-reduce of one double over the axes that shard x: it is
/// collective over these. All ranks get the same bits. For the norm of many tensors together see GlobalNorm. Errors as
/// sum_of_squares.
template <AnyTensor T>
  requires detail::is_accepted<detail::squares_of<T>>
[[nodiscard]] double norm(const T& x) {
  return [&]<class... Owed>(detail::list<Owed...>) {
    return math::sqrt(value(convert<Replicate<detail::front<detail::axes_of<Owed>>>...>(sum_of_squares(x))));
  }(detail::partials_of<typename detail::squares_of<T>::is::layout>{});
}
template <AnyTensor T>
  requires(!detail::is_accepted<detail::squares_of<T>>)
[[nodiscard]] auto norm(const T& x) -> detail::squares_of<T>;

}  // namespace meshwise
