// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "meshwise/collective/detail/arguments.hpp"
#include "meshwise/tensor/detail/walk.hpp"
#include "meshwise/tensor/replicas.hpp"
#include "meshwise/tensor/reshard.hpp"

namespace meshwise {

namespace detail {

template <class T>
using assume_of = typename tensor_traits<T>::verdict;

/// Whether every dim is cut by the same axes in two layouts, in any order and by any rules.
constexpr bool cut_alike(const LayoutValue& a, const LayoutValue& b) {
  for (int axis = 0; axis < a.axes; ++axis) {
    const bool cuts = a.is(axis, PlacementKind::shard);
    if (cuts != b.is(axis, PlacementKind::shard) || (cuts && a.dim[axis] != b.dim[axis])) return false;
  }
  return true;
}

template <class To, class A, class P>
consteval auto sum_left_out() {
  if constexpr (placement_traits<P>::partial && !std::is_same_v<P, placement_on<To, A>>) {
    return list<A>{};
  } else {
    return list<>{};
  }
}
template <class From, class To, class... As>
consteval auto sums_left_out(list<As...>) {
  return joined<decltype(sum_left_out<To, As, placement_on<From, As>>())...>();
}

/// The verdict on saying that a tensor is in layout To, which `Verdict` allows or refuses. How: what would convert it.
template <class T, class Verdict, class How>
consteval auto claim_verdict() {
  using From = typename T::layout;
  if constexpr (!is_accepted<Verdict>) {
    return type<Verdict>{};
  } else {
    using To = typename Verdict::is;
    using owed = decltype(sums_left_out<From, To>(axes_of_layout<From>{}));
    if constexpr (owed::size != 0) {
      return type<refused<because::a_claim_does_not_carry_out_the_sum_of_Partial<front<owed>>, try_<How>, From, To>>{};
    } else if constexpr (!cut_alike(T::layout_as_value, layout_value<To, typename T::dims>)) {
      return type<refused<because::a_claim_does_not_change_what_a_rank_holds, try_<How>, From, To>>{};
    } else {
      return type<accepted<Tensor<typename T::element, typename T::dims, To, typename T::space>>>{};
    }
  }
}
// Constrained like operands of verbs are.
template <AnyTensor T, Placement... Ps>
using claim_of = typename decltype(claim_verdict<T, convert_verdict<T, Ps...>, convert_<Ps...>>())::is;
template <AnyTensor T, AnyLayout To>
using claim_layout_of = typename decltype(claim_verdict<T, reshard_of<T, To>, reshard_<To>>())::is;

/// The verdict on a tensor of dims D that is made of elements E.
template <class D, class E, class Grid, class... Ps>
consteval auto made_verdict() {
  using layout = typename decltype(canonical<Grid, Ps...>())::is;
  using verdict = typename decltype(tensor_verdict<D, layout>())::is;
  if constexpr (is_accepted<verdict>) {
    return type<accepted<Tensor<E, D, layout>>>{};
  } else {
    return type<verdict>{};
  }
}
template <class Data>
using entry_t = std::remove_const_t<item_t<Data>>;
template <class D>
concept NamedDims = requires {
  typename dims_list<D>::is;
};
template <NamedDims D, class E, class Grid, Placement... Ps>
using made_of = typename decltype(made_verdict<D, E, Grid, Ps...>())::is;

/// Checks that a piece of `size` elements is what this rank holds of a tensor; across ranks if they are checked so.
/// claim: of that tensor, with the data of the piece.
inline void check_piece(const PieceFacts& claim, std::size_t size) {
  const GridView& view = claim.tensor.view;
  const unsigned all = wide_axes_where(view, [](int) { return true; });
  if (size != claim.size) {
    try {
      fail("assume", std::to_string(claim.size) + " elements, this rank's piece", std::to_string(size) + " elements",
           "cut the data by Tensor::positions or generate it", view.state->world->rank());
    } catch (const Error& error) {
      tell_others("assume", claim.tensor, all, error);
      throw;
    }
  }
  if (view.state->checks == Checks::communicating) check_claim("assume", claim, all, replicated_axes(claim.tensor));
}

template <class T>
T assumed(const typename T::grid& mesh, const Extents<typename T::dims>& extents,
          std::span<const typename T::element> local) {
  T result(mesh, extents, uninitialised{});
  check_piece({facts_of(result), reinterpret_cast<const std::byte*>(local.data()), result.local().size(),
               sizeof(typename T::element), &text_of_value<typename T::element>},
              local.size());
  if (!local.empty()) std::memcpy(static_cast<void*>(written(result)), local.data(), local.size_bytes());
  return result;
}

/// The same local piece as a tensor of type Result.
template <class Result, class T>
Result claimed(const T& x) {
  Result result(x.mesh(), x.extents(), x.storage(), x.offset());
  PieceFacts claim = piece_facts_of(x);
  const std::size_t size = std::exchange(claim.size, result.local().size());
  check_piece({facts_of(result), claim.data, claim.size, claim.element, claim.text}, size);
  return result;
}

}  // namespace detail

/// A tensor made of data that came from outside: each rank passes the piece that the layout gives it.
///
/// T: the tensor type. mesh: checked `communicating`, or the claim is the caller's. extents: global, with counts where
/// a dim is Counted. local: this rank's piece in row-major order; of a Partial its summand.
/// Cost: one copy. With communicating checks also one comparison of layout and extents over the whole mesh and one of
/// the replicas (see check_replicas): then it is collective over the mesh.
/// Errors: a piece of another size than the layout gives this rank; in these checks `mismatch` where ranks claim
/// different layouts or extents, or replicas differ.
template <AnyTensor T>
T assume(const typename T::grid& mesh, const Extents<typename T::dims>& extents,
         std::span<const typename T::element> local) {
  return detail::assumed<T>(mesh, extents, local);
}
template <class T, class Grid, class Data>
  requires(!detail::is_accepted<detail::assume_of<T>>)
auto assume(const Grid& mesh, const Extents<typename detail::tensor_traits<T>::dims>& extents, const Data& local)
    -> detail::assume_of<T>;

/// The same without a name for the tensor type: `assume<Dims<batch, seq>, Shard<batch, dp>>(mesh, {8, 4}, local)`. The
/// element is that of the data; axes that are not named hold replicas.
template <detail::NamedDims D, Placement... Ps, Axis... Axes, detail::Readable Data>
  requires detail::is_accepted<detail::made_of<D, detail::entry_t<Data>, Mesh<Axes...>, Ps...>>
[[nodiscard]] auto assume(const Mesh<Axes...>& mesh, const Extents<D>& extents, const Data& local) {
  using Result = typename detail::made_of<D, detail::entry_t<Data>, Mesh<Axes...>, Ps...>::is;
  return detail::assumed<Result>(mesh, extents, detail::reading(local));
}
template <detail::NamedDims D, Placement... Ps, Axis... Axes, detail::Readable Data>
  requires(!detail::is_accepted<detail::made_of<D, detail::entry_t<Data>, Mesh<Axes...>, Ps...>>)
[[nodiscard]] auto assume(const Mesh<Axes...>& mesh, const Extents<D>& extents, const Data& local)
    -> detail::made_of<D, detail::entry_t<Data>, Mesh<Axes...>, Ps...>;

/// Says that a tensor is placed otherwise along the named axes than its type has it: because code from outside has
/// written its pieces.
///
/// Placements: as for `convert`, but nothing is moved, the local piece is the same. So each dim stays cut by the same
/// axes, in another order or by another rule (a loader that deals out zigzag rows: `assume<Shard<seq,
/// Zigzag<cp>>>(x)`), and what is replicated may be claimed to be a sum that is owed. Cost: none, storage is shared; in
/// communicating checks as above. Errors: refused for a Partial that is to become something else, which takes a
/// conversion, and for what would change the pieces; a piece of another size than the claimed rule gives this rank.
template <Placement... Ps, AnyTensor T>
  requires(sizeof...(Ps) > 0 && detail::is_accepted<detail::claim_of<T, Ps...>>)
[[nodiscard]] auto assume(const T& x) { return detail::claimed<typename detail::claim_of<T, Ps...>::is>(x); }
template <Placement... Ps, AnyTensor T>
  requires(sizeof...(Ps) > 0 && !detail::is_accepted<detail::claim_of<T, Ps...>>)
[[nodiscard]] auto assume(const T& x) -> detail::claim_of<T, Ps...>;

/// The same for a whole layout, in which axes may stand in another order: `assume<Layout<Grid, Shard<d, tp, dp>>>(x)`.
template <AnyLayout To, AnyTensor T>
  requires detail::is_accepted<detail::claim_layout_of<T, To>>
[[nodiscard]] auto assume(const T& x) { return detail::claimed<typename detail::claim_layout_of<T, To>::is>(x); }
template <AnyLayout To, AnyTensor T>
  requires(!detail::is_accepted<detail::claim_layout_of<T, To>>)
[[nodiscard]] auto assume(const T& x) -> detail::claim_layout_of<T, To>;

}  // namespace meshwise
