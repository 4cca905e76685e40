// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <utility>

#include "meshwise/core/detail/list.hpp"
#include "meshwise/core/detail/sort.hpp"
#include "meshwise/core/detail/sorted.hpp"
#include "meshwise/core/reduction.hpp"
#include "meshwise/tensor/detail/places.hpp"
#include "meshwise/tensor/detail/verdicts.hpp"
#include "meshwise/tensor/detail/walk.hpp"

namespace meshwise::detail {

/// Whether a stands above b in the order that Max follows: NaN above everything, +0 above -0.
template <class A>
constexpr bool stands_above(A a, A b) {
  if constexpr (std::is_integral_v<A>) {
    return b < a;
  } else {
    if (b < a) return true;
    if (a < b) return false;
    if (a == b) return std::bit_cast<float_bits_t<A>>(a) < std::bit_cast<float_bits_t<A>>(b);  // +0 and -0
    return a != a && b == b;
  }
}

/// An element with its global index; `nowhere` marks a place that holds none.
template <class A>
struct Ranked {
  static constexpr std::int64_t nowhere = -1;
  A value;
  std::int64_t index;

  /// The order of a selection: larger values first, equal ones by index.
  friend constexpr bool operator<(const Ranked& a, const Ranked& b) {
    if (stands_above(a.value, b.value)) return true;
    if (stands_above(b.value, a.value)) return false;
    return a.index < b.index;
  }
};

/// The first k of many candidates in the order of Ranked, kept while they pass by.
template <class A>
class Selection {
 public:
  explicit Selection(std::size_t k) : k_(k) { kept_.reserve(k); }

  void offer(A value, std::int64_t index) {
    const Ranked<A> next{value, index};
    if (kept_.size() < k_) {
      kept_.push_back(next);
      if (kept_.size() < k_) return;
      for (std::size_t i = k_ / 2; i-- > 0;) sink(i);
    } else if (k_ != 0 && next < kept_.front()) {
      kept_.front() = next;
      sink(0);
    }
  }
  /// The candidates kept, best first, and an empty selection again.
  template <class Take>
  void take(const Take& each) {
    sort_stably(kept_.begin(), kept_.end(), [](const Ranked<A>& a, const Ranked<A>& b) { return a < b; });
    for (std::size_t i = 0; i < kept_.size(); ++i) each(i, kept_[i]);
    kept_.clear();
  }

 private:
  /// Once there are k, they are a heap with the worst one in front: moves one down to its place.
  void sink(std::size_t at) {
    for (std::size_t below = 2 * at + 1; below < k_; at = below, below = 2 * at + 1) {
      if (below + 1 < k_ && kept_[below] < kept_[below + 1]) ++below;
      if (!(kept_[at] < kept_[below])) return;
      std::swap(kept_[at], kept_[below]);
    }
  }

  std::size_t k_;
  List<Ranked<A>> kept_;
};

/// The local piece of a tensor around one dim: [outer, count, inner].
struct AroundDim {
  std::size_t outer, count, inner;
};
template <class D, class T>
AroundDim around(const T& x) {
  constexpr std::size_t d = dim_index<D, T>;
  return {elements_before(x, d), x.ranges()[d].size, elements_after(x, d)};
}

/// The verdict on choosing elements along D by their size: no Partial, and D whole unless the form is distributed,
/// whose name is the remedy.
template <class T, class D, class Distributed>
consteval auto choice_verdict() {
  using L = typename T::layout;
  if constexpr (!contains<D, dims_of<typename T::dims>>) {
    return type<refused<because::dim_not_in_the_tensor<D>, try_<name_a_dim_of_this_tensor>, typename T::dims>>{};
  } else {
    using verdict = map_of<T>;
    using axes = shard_axes<L, D>;
    constexpr bool cut = !std::is_void_v<Distributed> && axes::size != 0;
    using remedy = try_<Distributed, or_<convert_to_whole<axes>>>;
    return first_refusal<L, refuse_if<!is_accepted<verdict>, verdict>,
                         refuse_if<cut, refused<because::needs_the_whole_dim<D>, remedy, L>>>();
  }
}

/// The layout of what is chosen along D: as T, with D whole.
template <class T, class D>
using layout_of_choice = typename decltype(canonical_from<grid_of<typename T::layout>>(
    placements_except<typename T::layout, list<D>>{}))::is;

/// Elements of the whole tensor apart from the dim D.
template <class D, class T>
std::size_t rows_along(const T& x) {
  std::size_t rows = 1;
  for (std::size_t i = 0; i < T::rank; ++i) rows *= i == dim_index<D, T> ? 1 : x.extents()[i].size();
  return rows;
}

/// The largest number of indices of dim d that some rank holds.
inline std::size_t largest_part(const LayoutValue& layout, int d, const Extent& extent, Seat seat) {
  std::size_t parts = 1, largest = 0;
  for (int i = 0; i < layout.split[d]; ++i) parts *= seat.parts(layout.order[d][i]);
  for (std::size_t part = 0; part < parts; ++part) {
    std::size_t rest = part;
    for (int i = layout.split[d]; i-- > 0;) {
      const int axis = layout.order[d][i];
      seat.coordinate[static_cast<std::size_t>(axis)] = static_cast<int>(rest % seat.parts(axis));
      rest /= seat.parts(axis);
    }
    largest = larger(largest, range_of(layout, d, layout.split[d], extent, seat).size);
  }
  return largest;
}

/// The layout L, with a reduction owed over some axes that it replicates.
template <class L, class Op, class Axes>
using with_partials = typename decltype(canonical_from<grid_of<L>>(placements_of<L>{} + partials_over<Op>(Axes{})))::is;

/// x made whole over a list of axes, the last one first.
template <class T, class... As>
auto gathered(T&& x, list<As...>) {
  return []<class... Rs>(T&& y, list<Rs...>) { return convert<Replicate<Rs>...>(std::forward<T>(y)); }(
             std::forward<T>(x), reversed(list<As...>{}));
}

}  // namespace meshwise::detail
