// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "meshwise/layout/placement.hpp"
#include "meshwise/layout/refused.hpp"

namespace meshwise {

/// How the pieces of a tensor form the whole on a mesh, in canonical form: spell it `Layout<Mesh, Placements...>`.
///
/// Axes that no placement names are replicated. Placements stand in the order of their major axis in the mesh; the
/// ordered axes of a Shard are never sorted. Equal layouts are the same type.
template <class Grid, class... Placements>
struct CanonicalLayout {};

namespace detail {

template <class Grid>
struct mesh_axes;
template <Axis... Axes>
struct mesh_axes<Mesh<Axes...>> {
  using is = list<Axes...>;
};

/// Queries of a canonical layout.
template <class L>
struct layout_traits {
  static constexpr bool valid = false;
};
template <Axis... Axes, class... Ps>
struct layout_traits<CanonicalLayout<Mesh<Axes...>, Ps...>> {
  static constexpr bool valid = true;
  using grid = Mesh<Axes...>;
  using axes = list<Axes...>;
  using placements = list<Ps...>;

  template <class A>
  static consteval auto find_placement() {
    return first_of(joined<std::conditional_t<contains<A, axes_of<Ps>>, list<Ps>, list<>>..., list<Replicate<A>>>());
  }
  template <class D>
  static consteval auto find_shard() {
    return first_of(joined<typename pick_shard<D, Ps>::is..., list<Shard<D>>>());
  }

 private:
  template <class D, class P>
  struct pick_shard {
    using is = list<>;
  };
  template <class D, class... Es>
  struct pick_shard<D, Shard<D, Es...>> {
    using is = list<Shard<D, Es...>>;
  };
};

template <class L>
using placements_of = typename layout_traits<L>::placements;
template <class L>
using axes_of_layout = typename layout_traits<L>::axes;
template <class L>
using grid_of = typename layout_traits<L>::grid;

/// The placement of one axis: the Shard (whole) or Partial that names it, or Replicate.
template <class L, class A>
using placement_on = typename decltype(layout_traits<L>::template find_placement<A>())::is;
/// How a layout shards a dim, `Shard<D>` if it does not.
template <class L, class D>
using shard_of = typename decltype(layout_traits<L>::template find_shard<D>())::is;
/// The ordered axes that shard a dim, as a list: bare, or as they are written, with their split rules. Two tensors hold
/// the same indices of a dim only if the entries are the same.
template <class L, class D>
using shard_axes = axes_of<shard_of<L, D>>;
template <class L, class D>
using shard_entries = entries_of<shard_of<L, D>>;

template <class A, class P>
consteval bool begins_with() {
  using traits = placement_traits<P>;
  if constexpr (traits::replicate || traits::axes::size == 0) {
    return false;
  } else {
    return std::is_same_v<front<typename traits::axes>, A>;
  }
}

template <class P>
consteval auto sharded_dim() {
  if constexpr (!placement_traits<P>::shard) {
    return list<>{};
  } else if constexpr (placement_traits<P>::axes::size == 0) {
    return list<>{};
  } else {
    return list<typename placement_traits<P>::dim>{};
  }
}

template <class A, class... Ps>
consteval auto placements_that_begin_with() {
  return joined<std::conditional_t<begins_with<A, Ps>(), list<Ps>, list<>>...>();
}

template <class Axes>
struct not_among {
  template <class A>
  struct is {
    static constexpr bool value = !contains<A, Axes>;
  };
};

template <class Grid, class... Ps>
consteval type<CanonicalLayout<Grid, Ps...>> wrap(list<Ps...>) {
  return {};
}

template <class Grid, class... Ps, Axis... Axes>
consteval auto ordered(list<Axes...>) {
  return wrap<Grid>(joined<decltype(placements_that_begin_with<Axes, Ps...>())...>());
}

/// The axes that a Shard counts though others are major to them.
template <class P>
consteval auto counted_behind_others() {
  if constexpr (!placement_traits<P>::shard) {
    return list<>{};
  } else {
    return []<class... Es>(list<Es...>) {
      using first = front<list<Es..., void>>;
      return joined<std::conditional_t<entry_traits<Es>::rule == SplitRule::counted && !std::is_same_v<Es, first>,
                                       list<axis_of<Es>>, list<>>...>();
    }(entries_of<P>{});
  }
}

/// The axes of Partials whose reduction is another one than Op.
template <class Op, class P>
consteval auto owes_another_than() {
  if constexpr (!placement_traits<P>::partial) {
    return list<>{};
  } else {
    return std::conditional_t<std::is_same_v<typename placement_traits<P>::op, Op>, list<>, axes_of<P>>{};
  }
}
template <class P>
consteval auto reduction_owed() {
  if constexpr (!placement_traits<P>::partial) {
    return list<>{};
  } else {
    return list<typename placement_traits<P>::op>{};
  }
}

inline constexpr int most_axes_of_a_layout = 8;

template <class Grid, class... Ps>
consteval auto canonical() {
  using axes = typename mesh_axes<Grid>::is;
  using named = join<axes_of<Ps>...>;
  using foreign = decltype(filtered<not_among<axes>::template is>(named{}));
  using twice = repeated<named>;
  using dim_twice = repeated<join<decltype(sharded_dim<Ps>())...>>;
  using counted = join<decltype(counted_behind_others<Ps>())...>;
  using op = front<decltype(joined<decltype(reduction_owed<Ps>())..., list<void>>())>;
  using mixed = join<decltype(owes_another_than<op, Ps>())...>;
  if constexpr (axes::size > most_axes_of_a_layout) {
    return type<refused<because::mesh_has_more_than_8_axes, try_<merge_axes_that_are_always_used_together>, Grid>>{};
  } else if constexpr (foreign::size != 0) {
    return type<refused<because::axis_not_in_the_mesh<front<foreign>>, try_<name_an_axis_of_this_mesh>, Grid, Ps...>>{};
  } else if constexpr (!std::is_void_v<twice>) {
    return type<refused<because::axis_placed_twice<twice>, try_<list_each_axis_once>, Grid, Ps...>>{};
  } else if constexpr (!std::is_void_v<dim_twice>) {
    return type<refused<because::dim_repeated<dim_twice>, try_<list_all_axes_of_a_dim_in_one_Shard>, Grid, Ps...>>{};
  } else if constexpr (counted::size != 0) {
    return type<refused<because::counted_axis_is_not_major_most<front<counted>>,
                        try_<list_the_counted_axis_first_in_its_Shard>, Grid, Ps...>>{};
  } else if constexpr (mixed::size != 0) {
    return type<refused<because::Partials_have_different_reductions<front<mixed>>, try_<reduce_one_of_them_first>, Grid,
                        Ps...>>{};
  } else {
    return ordered<Grid, Ps...>(axes{});
  }
}

template <class Grid, class... Ps>
consteval auto canonical_from(list<Ps...>) {
  return canonical<Grid, Ps...>();
}
template <class Grid, class List>
using layout_from = typename decltype(canonical_from<Grid>(List{}))::is;

}  // namespace detail

/// The layout of a tensor on a mesh: `Layout<Grid, Shard<batch, dp>, Partial<tp>>`.
///
/// Grid: a `Mesh<...>` type. Placements: in any order; each axis at most once. Refused (as a type that is never
/// complete): an axis that the mesh does not have, an axis placed twice, a dim sharded by two placements, a Counted
/// axis behind others, and Partials of two reductions, because a maximum of sums is not the sum of the maxima.
template <class Grid, Placement... Placements>
using Layout = typename decltype(detail::canonical<Grid, Placements...>())::is;

/// How a layout places one axis: `Replicate<A>`, `Shard<D, axes...>` (whole) or `Partial<A, Op>`.
template <class L, Axis A>
using placement_of = detail::placement_on<L, A>;

/// A canonical layout type.
template <class L>
concept AnyLayout = detail::layout_traits<L>::valid;

}  // namespace meshwise
