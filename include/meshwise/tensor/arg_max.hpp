// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "meshwise/core/detail/sorted.hpp"
#include "meshwise/tensor/detail/candidates.hpp"

namespace meshwise {

namespace detail {

template <class T, class D, class Distributed>
consteval auto arg_max_verdict() {
  using verdict = typename decltype(choice_verdict<T, D, Distributed>())::is;
  if constexpr (!is_accepted<verdict>) {
    return type<verdict>{};
  } else {
    using dims = dims_from<without<D, dims_of<typename T::dims>>>;
    return type<accepted<Tensor<std::int64_t, dims, layout_of_choice<T, D>, typename T::space>>>{};
  }
}
template <class T, class D>
using arg_max_of = typename decltype(arg_max_verdict<operand<T>, D, distributed_arg_max_<D>>())::is;
template <class T, class D>
using distributed_arg_max_of = typename decltype(arg_max_verdict<operand<T>, D, void>())::is;

template <class D, class T>
void check_arg_max(const char* verb, const T& x) {
  if (x.template extent<D>() == 0 && rows_along<D>(x) != 0) {
    fail(verb, "at least one element along " + name_of<D>(), "0 of them", "skip the call for an empty tensor",
         x.mesh().world().rank());
  }
}

/// For each row of the local piece along D: the place of its first largest element among the local ones, and the
/// element, if there is any.
template <class D, class T, class Found>
void largest_in_rows(const T& x, const Found& found) {
  using A = accumulate_t<typename T::element>;
  const AroundDim box = around<D>(x);
  const auto* in = x.local().data();
  for (std::size_t o = 0; o < box.outer && box.count != 0; ++o) {
    for (std::size_t i = 0; i < box.inner; ++i) {
      const auto* row = in + o * box.count * box.inner + i;
      std::size_t at = 0;
      A top = static_cast<A>(row[0]);
      for (std::size_t j = 1; j < box.count; ++j) {
        const A value = static_cast<A>(row[j * box.inner]);
        if (value <= top && value != A(0)) continue;  // all but a few
        if (stands_above(value, top)) {
          top = value;
          at = j;
        }
      }
      found(o * box.inner + i, at, row[at * box.inner]);
    }
  }
}

}  // namespace detail

/// Where the largest element stands along D, which is whole: its index in D.
///
/// x: any layout that does not shard D, no Partial. Result: int64, x without D. Equal elements: the lowest index. The
/// order is that of Max: a NaN is above everything (the first NaN wins), +0 above -0; so picking by the result gives
/// max<D>(x). Cost: one pass, one allocation, no communication. Errors: refused for a sharded D, see
/// distributed_arg_max, and for a Partial; a D without elements.
template <Dim D, AnyTensor T>
  requires detail::is_accepted<detail::arg_max_of<T, D>>
[[nodiscard]] auto arg_max(const T& x) {
  using Result = typename detail::arg_max_of<T, D>::is;
  detail::check_arg_max<D>("arg_max", x);
  Result result(x.mesh(), detail::extents_from<typename Result::dims>(x), detail::uninitialised{});
  std::int64_t* out = detail::written(result);
  detail::largest_in_rows<D>(
      x, [out](std::size_t row, std::size_t at, auto) { out[row] = static_cast<std::int64_t>(at); });
  return result;
}
template <Dim D, AnyTensor T>
  requires(!detail::is_accepted<detail::arg_max_of<T, D>>)
[[nodiscard]] auto arg_max(const T& x) -> detail::arg_max_of<T, D>;

/// The same for a D that may be sharded: global indices, equal on all ranks along the axes that shard it.
///
/// x, result, ties and order as arg_max; empty parts are legal. Cost: one pass; over the axes that shard D
/// two all-reduces, of the largest element and of one index per row: nothing of D itself moves. Ordering: collective
/// over these axes. Errors: refused for a Partial; a D without elements.
template <Dim D, AnyTensor T>
  requires detail::is_accepted<detail::distributed_arg_max_of<T, D>>
[[nodiscard]] auto distributed_arg_max(const T& x) {
  using E = typename T::element;
  using A = accumulate_t<E>;
  using Result = typename detail::distributed_arg_max_of<T, D>::is;
  using L = typename Result::layout;
  using Owed = detail::shard_axes<typename T::layout, D>;
  using Tops = Tensor<E, typename Result::dims, detail::with_partials<L, Max, Owed>, typename T::space>;
  using Places = Tensor<std::int64_t, typename Result::dims, detail::with_partials<L, Min, Owed>, typename T::space>;
  detail::check_arg_max<D>("distributed_arg_max", x);
  const auto extents = detail::extents_from<typename Result::dims>(x);
  const Positions held = x.template positions<D>();
  Tops mine(x.mesh(), extents, detail::uninitialised{});
  Places places(x.mesh(), extents, detail::uninitialised{});
  std::int64_t* index = detail::written(places);
  E* top = detail::written(mine);
  const std::size_t rows = places.local().size();
  detail::fill(top, rows, static_cast<E>(Max::identity<E>()));
  detail::fill(index, rows, std::numeric_limits<std::int64_t>::max());
  detail::largest_in_rows<D>(x, [&](std::size_t row, std::size_t at, E value) {
    top[row] = value;
    index[row] = static_cast<std::int64_t>(held.at(at));
  });
  const auto best = detail::gathered(mine, Owed{});  // mine is still needed
  const E* all = best.local().data();
  for (std::size_t row = 0; row < rows; ++row) {
    const A a = static_cast<A>(all[row]), b = static_cast<A>(top[row]);
    if (detail::stands_above(a, b)) index[row] = std::numeric_limits<std::int64_t>::max();
  }
  return detail::gathered(std::move(places), Owed{});
}
template <Dim D, AnyTensor T>
  requires(!detail::is_accepted<detail::distributed_arg_max_of<T, D>>)
[[nodiscard]] auto distributed_arg_max(const T& x) -> detail::distributed_arg_max_of<T, D>;

}  // namespace meshwise
