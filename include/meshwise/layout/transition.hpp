// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "meshwise/layout/layout.hpp"

namespace meshwise {

/// What a change of one axis's placement does. The first four communicate, the others are local.
enum class Transition : std::uint8_t {
  all_reduce,      ///< Partial -> Replicate
  reduce_scatter,  ///< Partial -> Shard
  all_gather,      ///< Shard -> Replicate
  all_to_all,      ///< Shard of one dim -> Shard of another
  slice,           ///< Replicate -> Shard: keep the own part
  keep_first,      ///< Replicate -> Partial: coordinate 0 keeps the value, the others hold the identity
  pad,             ///< Shard -> Partial: the identity outside the own part
  equal,           ///< nothing
};

constexpr const char* transition_name(Transition t) {
  constexpr const char* names[] = {"all_reduce", "reduce_scatter", "all_gather", "all_to_all",
                                   "slice",      "keep_first",     "pad",        "equal"};
  return names[static_cast<int>(t)];
}

/// Bytes that all `n` ranks of the axis together receive; divide by n for the mean per rank.
///
/// bytes: of the tensor as held when replicated on this axis. Exact for any split, except all_to_all, whose exact
/// value depends on both splits; here it is the even one, (n-1)/n of the bytes.
constexpr double transition_volume(Transition t, int n, double bytes) {
  switch (t) {
    case Transition::all_reduce: return 2.0 * (n - 1) * bytes;
    case Transition::reduce_scatter:
    case Transition::all_gather: return (n - 1.0) * bytes;
    case Transition::all_to_all: return (n - 1.0) / n * bytes;
    default: return 0.0;
  }
}

constexpr bool communicates(Transition t) { return t <= Transition::all_to_all; }

namespace detail {

/// One placement per axis, in the order in which they are carried out.
template <class P>
struct one_axis {
  using is = list<P>;
};
template <class D, class... As>
struct one_axis<Shard<D, As...>> {
  using is = list<Shard<D, As>...>;
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
  template <class P>
  static consteval auto from() {
    if constexpr (!contains<A, axes_of<P>>) {
      return list<P>{};
    } else if constexpr (placement_traits<P>::shard && axes_of<P>::size > 1) {
      return list<shard_over<typename placement_traits<P>::dim, without<A, axes_of<P>>>>{};
    } else {
      return list<>{};
    }
  }
  template <class... Ps>
  static consteval auto all(list<Ps...>) {
    return joined<decltype(from<Ps>())...>();
  }
};

/// The placements with `Shard<D, A>` joined at the minor end of D.
template <class D, class A, class... Ps>
consteval auto with_minor_axis(list<Ps...>) {
  constexpr bool sharded = (contains<D, decltype(sharded_dim<Ps>())> || ...);
  if constexpr (sharded) {
    return list<std::conditional_t<contains<D, decltype(sharded_dim<Ps>())>, shard_over<D, join<axes_of<Ps>, list<A>>>,
                                   Ps>...>{};
  } else {
    return list<Ps..., Shard<D, A>>{};
  }
}

template <class A, class P, class List>
consteval auto with_placement(List rest) {
  if constexpr (placement_traits<P>::shard) {
    return with_minor_axis<typename placement_traits<P>::dim, A>(rest);
  } else if constexpr (placement_traits<P>::partial) {
    return rest + list<P>{};
  } else {
    return rest;
  }
}

/// The layout after axis A of L is placed as P says; A is minor-most where it stands.
template <class L, class A, class P>
consteval auto replaced() {
  return canonical_from<grid_of<L>>(with_placement<A, P>(erase_axis<A>::all(placements_of<L>{})));
}

/// Whether P, a placement of one axis, is how L places that axis already, at the minor end of its dim.
template <class L, class P>
consteval bool already() {
  using A = front<axes_of<P>>;
  using From = placement_on<L, A>;
  if constexpr (placement_traits<P>::shard && placement_traits<From>::shard) {
    return std::is_same_v<typename placement_traits<P>::dim, typename placement_traits<From>::dim> &&
           is_minor_most<From, A>();
  } else {
    return std::is_same_v<P, From>;
  }
}

template <class L, class P>
consteval Transition transition() {
  using From = placement_traits<placement_on<L, front<axes_of<P>>>>;
  using To = placement_traits<P>;
  if constexpr (already<L, P>()) {
    return Transition::equal;
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
                        try_<move_the_minor_axes_first>, L>>{};
  } else if constexpr (placement_traits<From>::partial && To::partial) {
    return type<refused<because::reduction_of_a_Partial_cannot_change<A, From, P>, try_<convert_<Replicate<A>>>, L>>{};
  } else {
    return type<accepted<typename decltype(replaced<L, A, P>())::is>>{};
  }
}

template <class L, class P>
using layout_after = typename decltype(step_verdict<L, P>())::is;

template <class L, class... Steps>
consteval auto chain_verdict(list<Steps...> steps) {
  if constexpr (steps.size == 0) {
    return type<accepted<L>>{};
  } else {
    return []<class First, class... Rest>(list<First, Rest...>) {
      using verdict = layout_after<L, First>;
      if constexpr (is_accepted<verdict>) {
        return chain_verdict<typename verdict::is>(list<Rest...>{});
      } else {
        return type<verdict>{};
      }
    }(steps);
  }
}

/// Whether L already places the axes of P, all of them and in order, as P says.
template <class L, class P>
consteval bool holds() {
  if constexpr (axes_of<P>::size == 0) {
    return true;
  } else if constexpr (!contains<front<axes_of<P>>, axes_of_layout<L>>) {
    return false;
  } else {
    return std::is_same_v<placement_on<L, front<axes_of<P>>>, P>;
  }
}

/// The steps of one placement after another, those left out that hold when their turn comes.
template <class L, class Done>
consteval auto steps_in_order(list<>, Done done) {
  return done;
}
template <class L, class Done, class P, class... Rest>
consteval auto steps_in_order(list<P, Rest...>, Done done) {
  if constexpr (holds<L, P>()) {
    return steps_in_order<L>(list<Rest...>{}, done);
  } else {
    using steps = typename one_axis<P>::is;
    using verdict = typename decltype(chain_verdict<L>(steps{}))::is;
    if constexpr (is_accepted<verdict>) {
      return steps_in_order<typename verdict::is>(list<Rest...>{}, done + steps{});
    } else {
      return done + steps{};
    }
  }
}

/// The one-axis steps of `convert<Ps...>` on L.
template <class L, class... Ps>
consteval auto conversion_steps() {
  return steps_in_order<L>(list<Ps...>{}, list<>{});
}

template <class L, class... Ps>
using conversion_verdict = typename decltype(chain_verdict<L>(conversion_steps<L, Ps...>()))::is;

/// What To says about the axes on which From differs.
template <class From, class To, class... As>
consteval auto changes(list<As...>) {
  return distinct(joined<std::conditional_t<std::is_same_v<placement_on<From, As>, placement_on<To, As>>, list<>,
                                            list<placement_on<To, As>>>...>());
}
template <class... As>
consteval auto replicate_each(list<As...>) {
  return list<Replicate<As>...>{};
}
/// What has to leave before the axes of P can take their places in To: minor axes first.
template <class To, class P>
consteval auto departures() {
  if constexpr (std::is_same_v<placement_on<To, front<axes_of<P>>>, P>) {
    return list<>{};
  } else {
    return replicate_each(reversed(axes_of<P>{}));
  }
}
template <class From, class To, class... Ps>
consteval bool leads_to(list<Ps...>) {
  return std::is_same_v<conversion_verdict<From, Ps...>, accepted<To>>;
}
template <class... Ps>
consteval type<convert_<Ps...>> spelled(list<Ps...>) {
  return {};
}
template <class From, class To>
consteval auto remedy_for() {
  if constexpr (std::is_same_v<From, To>) {
    return type<convert_<>>{};  // asked for whenever a tensor is copied
  } else if constexpr (!std::is_same_v<grid_of<From>, grid_of<To>>) {
    return type<bring_both_to_one_mesh>{};
  } else {
    constexpr auto forward = changes<From, To>(axes_of_layout<To>{});
    constexpr auto backward = reversed(forward);
    if constexpr (leads_to<From, To>(forward)) {
      return spelled(forward);
    } else if constexpr (leads_to<From, To>(backward)) {
      return spelled(backward);
    } else {
      return []<class... Ps>(list<Ps...>, auto arrivals) {
        return spelled(joined<decltype(departures<To, Ps>())...>() + arrivals);
      }(placements_of<From>{}, forward);
    }
  }
}
/// The conversion that leads from one layout to another, spelled as a remedy.
template <class From, class To>
using needed_conversion = typename decltype(remedy_for<From, To>())::is;

}  // namespace detail

/// The transition that placing one axis anew causes: `transition_of<L, Replicate<tp>>`.
template <class L, Placement P>
inline constexpr Transition transition_of = detail::transition<L, P>();

}  // namespace meshwise
