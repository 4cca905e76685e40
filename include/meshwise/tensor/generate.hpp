// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

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

/// Calls f(global index, local position) for every element that this rank holds, in local order.
template <class T, class F>
void for_each_index(const T& x, const F& f) {
  using D = typename T::dims;
  const auto& ranges = x.ranges();
  Index<D> index;
  if (x.local().size() == 0) return;
  for (std::size_t i = 0; i < T::rank; ++i) index.at[i] = ranges[i].begin;
  for (std::size_t local = 0;; ++local) {
    index.linear = 0;
    for (std::size_t i = 0; i < T::rank; ++i) index.linear = index.linear * x.extents()[i] + index.at[i];
    f(static_cast<const Index<D>&>(index), local);
    std::size_t i = T::rank;
    for (;;) {
      if (i == 0) return;
      --i;
      if (++index.at[i] < ranges[i].end()) break;
      index.at[i] = ranges[i].begin;
    }
  }
}

/// Calls f(global linear index of the first, local position, length) for the runs of the last dims that are contiguous
/// both in the local piece and in the whole tensor.
template <class T, class F>
void for_each_run(const T& x, const F& f) {
  const std::size_t total = x.local().size();
  if (total == 0) return;
  std::size_t whole = T::rank;  // dims from here on are held entirely
  std::size_t run = 1;
  while (whole > 0 && x.ranges()[whole - 1].size == x.extents()[whole - 1]) run *= x.extents()[--whole];
  if (whole > 0) run *= x.ranges()[--whole].size;
  std::array<std::size_t, T::rank> at{};
  for (std::size_t local = 0; local < total; local += run) {
    std::size_t linear = 0;
    for (std::size_t i = 0; i < T::rank; ++i) {
      linear = linear * x.extents()[i] + x.ranges()[i].begin + at[i];
    }
    f(linear, local, run);
    for (std::size_t i = whole; i-- > 0;) {
      if (++at[i] < x.ranges()[i].size) break;
      at[i] = 0;
    }
  }
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
template <class T>
using generate_of = typename decltype(generate_verdict<T>())::is;

template <class T>
using assume_of = typename tensor_traits<T>::verdict;

}  // namespace detail

/// A tensor whose elements are a function of their global index, so that its value does not depend on the layout.
///
/// T: the tensor type, no Partial. extents: global. f: `Index<Dims> -> element`; called for the elements that this rank
/// holds, in local order. Cost: one call per local element, one allocation, no communication: replicas agree because f
/// is a function.
template <AnyTensor T, class F>
  requires detail::is_accepted<detail::generate_of<T>> T generate(const typename T::grid& mesh,
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
  requires(!detail::is_accepted<detail::generate_of<T>>)
auto generate(const Grid& mesh, const Extents<typename detail::tensor_traits<T>::dims>& extents, const F& f)
    -> detail::generate_of<T>;

/// A tensor made of data that came from outside: each rank passes the piece that the layout gives it.
///
/// T: the tensor type. extents: global. local: this rank's piece in row-major order. Cost: one copy. It is the caller's
/// claim that replicas are equal; nothing checks it. Errors: a piece of another size than the
/// layout gives this rank.
template <AnyTensor T>
T assume(const typename T::grid& mesh, const Extents<typename T::dims>& extents,
         std::span<const typename T::element> local) {
  T result(mesh, extents, detail::uninitialised{});
  if (local.size() != result.local().size()) {
    fail("assume", std::to_string(result.local().size()) + " elements, this rank's piece",
         std::to_string(local.size()) + " elements", "cut the data by Tensor::range or generate it",
         mesh.world().rank());
  }
  if (!local.empty()) std::memcpy(result.mutable_local().data(), local.data(), local.size_bytes());
  return result;
}
template <class T, class Grid, class Data>
  requires(!detail::is_accepted<detail::assume_of<T>>)
auto assume(const Grid& mesh, const Extents<typename detail::tensor_traits<T>::dims>& extents, const Data& local)
    -> detail::assume_of<T>;

}  // namespace meshwise
