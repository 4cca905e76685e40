// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "meshwise/core/detail/sorted.hpp"
#include "meshwise/tensor/detail/candidates.hpp"
#include "meshwise/tensor/rename.hpp"

namespace meshwise {

/// The places of a selection along a dim: 0 is the best.
template <Dim D>
struct best : dim {};

/// What top_k returns; in both tensors `best<D>` stands where D was.
template <class Values, class Indices>
struct TopK {
  Values values;
  Indices indices;  ///< int64, global indices in D
};

namespace detail {

template <class T, class D, class Distributed>
consteval auto top_k_verdict() {
  using verdict = typename decltype(choice_verdict<T, D, Distributed>())::is;
  if constexpr (!is_accepted<verdict>) {
    return type<verdict>{};
  } else {
    using layout = layout_of_choice<T, D>;
    using dims = dims_from<decltype(renamed_dims<D, best<D>>(dims_of<typename T::dims>{}))>;
    using valid = typename decltype(tensor_verdict<dims, layout>())::is;
    if constexpr (!is_accepted<valid>) {
      return type<valid>{};
    } else {
      return type<accepted<TopK<Tensor<typename T::element, dims, layout, typename T::space>,
                                Tensor<std::int64_t, dims, layout, typename T::space>>>>{};
    }
  }
}
template <class T, class D>
using top_k_of = typename decltype(top_k_verdict<operand<T>, D, distributed_top_k_<D>>())::is;
template <class T, class D>
using distributed_top_k_of = typename decltype(top_k_verdict<operand<T>, D, void>())::is;

template <class D, class T>
void check_top_k(const char* verb, const T& x, std::size_t k) {
  const std::size_t n = x.template extent<D>();
  if (k > n) {
    fail(verb, "k of at most " + std::to_string(n) + ", the extent of " + name_of<D>(), "k = " + std::to_string(k),
         "ask for no more elements than there are", x.mesh().world().rank());
  }
}

/// The k best of every row of a box [outer, count, inner], in order, into boxes [outer, k, inner]. index(j, position):
/// the index of element j, which lies at that position, or nowhere. Places that are left are filled with nowhere.
template <class E, class Index>
void select_rows(const AroundDim& box, std::size_t k, const E* in, const Index& index, E* values,
                 std::int64_t* indices) {
  using A = accumulate_t<E>;
  Selection<A> selection(detail::smaller(k, box.count));
  for (std::size_t o = 0; o < box.outer; ++o) {
    for (std::size_t i = 0; i < box.inner; ++i) {
      for (std::size_t j = 0; j < box.count; ++j) {
        const std::size_t position = (o * box.count + j) * box.inner + i;
        const std::int64_t at = index(j, position);
        if (at != Ranked<A>::nowhere) selection.offer(static_cast<A>(in[position]), at);
      }
      const auto place = [&](std::size_t j) { return (o * k + j) * box.inner + i; };
      std::size_t taken = 0;
      selection.take([&](std::size_t j, const Ranked<A>& one) {
        values[place(j)] = static_cast<E>(one.value);
        indices[place(j)] = one.index;
        taken = j + 1;
      });
      for (; taken < k; ++taken) {
        values[place(taken)] = E(0);
        indices[place(taken)] = Ranked<A>::nowhere;
      }
    }
  }
}

/// Values and indices in the dims of x with `best<D>` of this extent instead of D; to be written.
template <class D, class Result, class T>
Result selection_like(const T& x, std::size_t count) {
  using Values = decltype(Result::values);
  using Indices = decltype(Result::indices);
  Extents<typename Values::dims> extents = x.extents();
  extents[dim_index<D, T>] = count;
  return {Values(x.mesh(), extents, uninitialised{}), Indices(x.mesh(), extents, uninitialised{})};
}

/// What each rank offers: its own best, side by side along `best<D>`, which is sharded as D is.
template <class Result, class D, class Axes>
consteval auto offered_by_all() {
  using Values = decltype(Result::values);
  using L = typename Values::layout;
  using layout =
      typename decltype(canonical_from<grid_of<L>>(placements_of<L>{} + list<shard_over<best<D>, Axes>>{}))::is;
  return type<TopK<Tensor<typename Values::element, typename Values::dims, layout, typename Values::space>,
                   Tensor<std::int64_t, typename Values::dims, layout, typename Values::space>>>{};
}

}  // namespace detail

/// The k largest elements along D, which is whole, largest first, and their indices in D.
///
/// x: any layout that does not shard D, no Partial. k: at most the extent of D; 0 gives empty tensors. Result: x with
/// `best<D>` instead of D. Equal elements: the lower index first. The order is that of Max: a NaN is above everything,
/// +0 above -0. Cost: one pass with a heap of k elements; two allocations; no communication. Errors: refused for a
/// sharded D, see distributed_top_k, and for a Partial; a k beyond the extent.
template <Dim D, AnyTensor T>
  requires detail::is_accepted<detail::top_k_of<T, D>>
[[nodiscard]] auto top_k(const T& x, std::size_t k) {
  detail::check_top_k<D>("top_k", x, k);
  auto result = detail::selection_like<D, typename detail::top_k_of<T, D>::is>(x, k);
  detail::select_rows(
      detail::around<D>(x), k, x.local().data(),
      [](std::size_t j, std::size_t) { return static_cast<std::int64_t>(j); }, detail::written(result.values),
      detail::written(result.indices));
  return result;
}
template <Dim D, AnyTensor T>
  requires(!detail::is_accepted<detail::top_k_of<T, D>>)
[[nodiscard]] auto top_k(const T& x, std::size_t k) -> detail::top_k_of<T, D>;

/// The same for a D that may be sharded: global indices, equal on all ranks along the axes that shard it.
///
/// x, k, result, ties and order as top_k. k may be larger than a part, and parts may be empty. Cost: one pass; over the
/// axes that shard D an all-gather of the candidates: of every row and rank as many elements, and int64 indices, as it
/// can contribute, min(k, the largest part). Ordering: collective over these axes. Errors: refused for a Partial; a k
/// beyond the extent.
template <Dim D, AnyTensor T>
  requires detail::is_accepted<detail::distributed_top_k_of<T, D>>
[[nodiscard]] auto distributed_top_k(const T& x, std::size_t k) {
  using Result = typename detail::distributed_top_k_of<T, D>::is;
  using Axes = detail::shard_axes<typename T::layout, D>;
  detail::check_top_k<D>("distributed_top_k", x, k);
  if constexpr (Axes::size == 0) {
    return top_k<D>(x, k);
  } else {
    using Offers = typename decltype(detail::offered_by_all<Result, D, Axes>())::is;
    const std::size_t parts = detail::part_of(x.mesh(), Axes{}).parts;
    constexpr std::size_t d = detail::dim_index<D, T>;
    const std::size_t each = detail::smaller(k, detail::largest_part(T::layout_as_value, static_cast<int>(d),
                                                                     x.extents()[d], detail::Seat(x.mesh().view())));
    auto mine = detail::selection_like<D, Offers>(x, parts * each);
    const Positions held = x.template positions<D>();
    std::int64_t* const indices_here = detail::written(mine.indices);
    detail::select_rows(
        detail::around<D>(x), each, x.local().data(),
        [](std::size_t j, std::size_t) { return static_cast<std::int64_t>(j); }, detail::written(mine.values),
        indices_here);
    // Local indices ascend as global ones do.
    for (std::size_t i = 0; i < mine.indices.local().size(); ++i) {
      std::int64_t& at = indices_here[i];
      if (at >= 0) at = static_cast<std::int64_t>(held.at(static_cast<std::size_t>(at)));
    }
    const auto values = detail::gathered(std::move(mine.values), Axes{});
    const auto indices = detail::gathered(std::move(mine.indices), Axes{});
    auto result = detail::selection_like<D, Result>(x, k);
    detail::select_rows(
        detail::around<best<D>>(values), k, values.local().data(),
        [at = indices.local().data()](std::size_t, std::size_t position) { return at[position]; },
        detail::written(result.values), detail::written(result.indices));
    return result;
  }
}
template <Dim D, AnyTensor T>
  requires(!detail::is_accepted<detail::distributed_top_k_of<T, D>>)
[[nodiscard]] auto distributed_top_k(const T& x, std::size_t k) -> detail::distributed_top_k_of<T, D>;

}  // namespace meshwise
