// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "meshwise/layout/layout.hpp"
#include "meshwise/layout/transition_kind.hpp"

namespace meshwise::detail {

/// One placement per axis, in the order in which they are carried out.
template <class P>
struct one_axis {
  using is = list<P>;
};
template <class D, class... Es>
struct one_axis<Shard<D, Es...>> {
  using is = list<Shard<D, Es>...>;
};

template <class From, class A>
consteval bool is_minor_most() {
  if constexpr (placement_traits<From>::shard) {
    return std::is_same_v<back<typename placement_traits<From>::axes>, A>;
  } else {
    return true;
  }
}

/// The placements of L without axis A.
template <class A>
struct erase_axis {
  template <class E>
  struct is_other {
    static constexpr bool value = !std::is_same_v<axis_of<E>, A>;
  };
  template <class P>
  static consteval auto from() {
    if constexpr (!contains<A, axes_of<P>>) {
      return list<P>{};
    } else if constexpr (placement_traits<P>::shard && axes_of<P>::size > 1) {
      return list<shard_over<typename placement_traits<P>::dim, decltype(filtered<is_other>(entries_of<P>{}))>>{};
    } else {
      return list<>{};
    }
  }
  template <class... Ps>
  static consteval auto all(list<Ps...>) {
    return joined<decltype(from<Ps>())...>();
  }
};

/// The placements with `Shard<D, E>` joined at the minor end of D.
template <class D, class E, class... Ps>
consteval auto with_minor_axis(list<Ps...>) {
  constexpr bool sharded = (contains<D, decltype(sharded_dim<Ps>())> || ...);
  if constexpr (sharded) {
    return list<std::conditional_t<contains<D, decltype(sharded_dim<Ps>())>,
                                   shard_over<D, join<entries_of<Ps>, list<E>>>, Ps>...>{};
  } else {
    return list<Ps..., Shard<D, E>>{};
  }
}

template <class P, class List>
consteval auto with_placement(List rest) {
  if constexpr (placement_traits<P>::shard) {
    return with_minor_axis<typename placement_traits<P>::dim, front<entries_of<P>>>(rest);
  } else if constexpr (placement_traits<P>::partial) {
    return rest + list<P>{};
  } else {
    return rest;
  }
}

/// The layout after axis A of L is placed as P says; A is minor-most where it stands.
template <class L, class A, class P>
consteval auto replaced() {
  return canonical_from<grid_of<L>>(with_placement<P>(erase_axis<A>::all(placements_of<L>{})));
}

template <class P, class Q>
consteval bool same_dim() {
  if constexpr (placement_traits<P>::shard && placement_traits<Q>::shard) {
    return std::is_same_v<typename placement_traits<P>::dim, typename placement_traits<Q>::dim>;
  } else {
    return false;
  }
}

/// Whether P, a placement of one axis, is how L places that axis already, at the minor end of its dim.
template <class L, class P>
consteval bool already() {
  using A = front<axes_of<P>>;
  using From = placement_on<L, A>;
  if constexpr (same_dim<P, From>()) {
    return std::is_same_v<back<entries_of<From>>, front<entries_of<P>>>;
  } else {
    return std::is_same_v<P, From>;
  }
}

template <class L, class P>
consteval Transition transition() {
  using Now = placement_on<L, front<axes_of<P>>>;
  using From = placement_traits<Now>;
  using To = placement_traits<P>;
  if constexpr (already<L, P>()) {
    return Transition::equal;
  } else if constexpr (same_dim<P, Now>()) {
    return Transition::exchange;  // by another rule
  } else if constexpr (From::partial) {
    return To::shard ? Transition::reduce_scatter : Transition::all_reduce;
  } else if constexpr (From::shard) {
    return To::replicate ? Transition::all_gather : To::shard ? Transition::all_to_all : Transition::pad;
  } else {
    return To::shard ? Transition::slice : Transition::keep_first;
  }
}

/// The verdict on changing one axis: accepted with the new layout, or refused.
template <class L, class P>
consteval auto step_verdict() {
  using A = front<axes_of<P>>;
  using From = placement_on<L, A>;
  using To = placement_traits<P>;
  if constexpr (!contains<A, axes_of_layout<L>>) {
    return type<refused<because::axis_not_in_the_mesh<A>, try_<name_an_axis_of_this_mesh>, L>>{};
  } else if constexpr (already<L, P>()) {
    return type<accepted<L>>{};
  } else if constexpr (!is_minor_most<From, A>()) {
    return type<refused<because::axis_is_not_minor_most_in_its_dim<A, typename placement_traits<From>::dim>,
                        try_<move_the_minor_axes_first, or_<reshard_to_the_layout_wanted>>, L>>{};
  } else if constexpr (placement_traits<From>::partial && To::partial) {
    return type<refused<because::reduction_of_a_Partial_cannot_change<A, From, P>, try_<convert_<Replicate<A>>>, L>>{};
  } else {
    using result = typename decltype(replaced<L, A, P>())::is;
    return type<std::conditional_t<AnyLayout<result>, accepted<result>, result>>{};
  }
}

}  // namespace meshwise::detail
