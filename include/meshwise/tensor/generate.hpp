// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "meshwise/tensor/detail/boxes.hpp"
#include "meshwise/tensor/detail/functions.hpp"
#include "meshwise/tensor/detail/verdicts.hpp"

namespace meshwise {

/// A global position in a tensor.
template <class D>
struct Index {
  std::array<std::size_t, static_cast<std::size_t>(D::rank)> at{};
  std::size_t linear = 0;  ///< row-major position among all elements of the whole tensor

  template <Dim One>
  std::size_t position() const {
    return at[static_cast<std::size_t>(detail::index_of<One, detail::dims_of<D>>)];
  }
};

namespace detail {

/// The indices of every dim that this rank holds.
template <class T>
std::array<Positions, T::rank> positions_held(const T& x) {
  std::array<Positions, T::rank> held;
  for (std::size_t i = 0; i < T::rank; ++i) {
    const int d = static_cast<int>(i);
    held[i] = is_contiguous(T::layout_as_value, d)
                  ? Positions(x.ranges()[i])
                  : positions_of(T::layout_as_value, d, x.extents()[i], Seat(x.mesh().view()));
  }
  return held;
}

/// Calls f(global index, local position) for every element that this rank holds, in local order.
template <class T, class F>
void for_each_index(const T& x, const F& f) {
  if (x.local().size() == 0) return;
  const std::array<Positions, T::rank> held = positions_held(x);
  std::array<PositionCursor, T::rank> cursors;
  Index<typename T::dims> index;
  for (std::size_t i = 0; i < T::rank; ++i) {
    cursors[i] = PositionCursor(held[i]);
    index.at[i] = cursors[i].value();
  }
  for (std::size_t local = 0;; ++local) {
    index.linear = 0;
    for (std::size_t i = 0; i < T::rank; ++i) index.linear = index.linear * x.extents()[i] + index.at[i];
    f(static_cast<const Index<typename T::dims>&>(index), local);
    std::size_t i = T::rank;
    for (bool carry = true; carry;) {
      if (i == 0) return;
      --i;
      carry = !cursors[i].next();
      index.at[i] = cursors[i].value();
    }
  }
}

/// Calls f(global linear index of the first, local position, length) for the runs that are contiguous both in the local
/// piece and in the whole tensor.
template <class T, class F>
void for_each_run(const T& x, const F& f) {
  const std::array<Positions, T::rank> held = positions_held(x);
  std::array<std::size_t, T::rank> shape;
  for (std::size_t i = 0; i < T::rank; ++i) shape[i] = x.extents()[i];
  each_run(shape, held, f);
}

/// The verdict on making a tensor of type T from a function of indices: no Partial.
template <class T>
consteval auto generate_verdict() {
  using valid = typename tensor_traits<T>::verdict;
  if constexpr (!is_accepted<valid>) {
    return type<valid>{};
  } else {
    using owed = partials_of<typename T::layout>;
    if constexpr (owed::size != 0) {
      return type<refused<because::Partial_cannot_be_generated<front<axes_of<front<owed>>>>,
                          try_<generate_it_replicated_then_view_as_<front<owed>>>, typename T::layout>>{};
    } else {
      return type<accepted<T>>{};
    }
  }
}
template <class T, class F>
consteval auto generate_by_verdict() {
  using verdict = typename decltype(generate_verdict<T>())::is;
  if constexpr (is_accepted<verdict>) {
    using index = Index<typename T::dims>;
    using refusal =
        refused<because::function_does_not_take_the_index, try_<take_an_Index_and_return_an_element>, index>;
    return first_of(function_fits<typename T::element, refusal, F, index>() + list<verdict>{});
  } else {
    return type<verdict>{};
  }
}
template <class T, class F>
using generate_of = typename decltype(generate_by_verdict<T, F>())::is;

}  // namespace detail

/// A tensor whose elements are a function of their global index, so that its value does not depend on the layout.
///
/// T: the tensor type, no Partial. extents: global. f: `Index<Dims> -> element`; called for the elements that this rank
/// holds, in local order. Cost: one call per local element, one allocation, no communication: replicas agree because f
/// is a function. Errors: refused for a Partial, and for an f that is mutable or takes something else.
template <AnyTensor T, class F>
  requires detail::is_accepted<detail::generate_of<T, F>> T generate(const typename T::grid& mesh,
                                                                     const Extents<typename T::dims>& extents,
                                                                     const F& f) {
    T result(mesh, extents, detail::uninitialised{});
    auto* out = result.mutable_local().data();
    detail::for_each_index(result, [&](const Index<typename T::dims>& index, std::size_t local) {
      out[local] = static_cast<typename T::element>(f(index));
    });
    return result;
  }

template <class T, class Grid, class F>
  requires(!detail::is_accepted<detail::generate_of<T, F>>)
auto generate(const Grid& mesh, const Extents<typename detail::tensor_traits<T>::dims>& extents, const F& f)
    -> detail::generate_of<T, F>;

}  // namespace meshwise
