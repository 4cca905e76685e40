// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "meshwise/tensor/detail/verdicts.hpp"

namespace meshwise::detail {

/// The mesh of the axes that gradients are summed over, which are said as an axis or as `Mesh<dp, cp>`.
template <class Over>
struct mesh_over {
  using is = Mesh<Over>;
};
template <Axis... As>
struct mesh_over<Mesh<As...>> {
  using is = Mesh<As...>;
};

template <class Line>
struct outside_of_line {
  template <class A>
  struct is {
    static constexpr bool value = !contains<A, typename Line::axes>;
  };
};
/// The first axis of Grid that Line lacks, or void.
template <class Line, class Grid>
using axis_outside =
    front<decltype(filtered<outside_of_line<Line>::template is>(typename Grid::axes{}) + list<void>{})>;

/// A mesh seen along some of its axes only: the ranks that differ in these.
template <class Line, class Grid>
Line line_of(const Grid& mesh) {
  if constexpr (std::is_same_v<Line, Grid>) {
    return mesh;
  } else {
    using A = axis_outside<Line, Grid>;
    static_assert(!std::is_void_v<A>,
                  "the axes to sum over are not axes of the mesh, or stand in another order there: "
                  "name axes of the mesh, in its order");
    return line_of<Line>(mesh.template without<A>());
  }
}

template <class T, class Placements>
struct with_placements;
template <class T, class... Ps>
struct with_placements<T, list<Ps...>> {
  using is =
      Tensor<typename T::element, typename T::dims,
             layout_from<grid_of<typename T::layout>, decltype(placements_of<typename T::layout>{} + list<Ps...>{})>,
             typename T::space>;
};
template <class Axes>
struct all_partial;
template <class... As>
struct all_partial<list<As...>> {
  using is = list<Partial<As>...>;
};
/// The gradient of a T that is replicated over the axes of Line, before it is summed over them.
template <class T, class Line>
using owed_over = typename with_placements<T, typename all_partial<typename Line::axes>::is>::is;

/// The layout of a flat bucket that owes a sum over all axes of Line.
template <class Line>
using owed_on = layout_from<Line, typename all_partial<typename Line::axes>::is>;

/// Verdict list of one axis for a value that is the same on all ranks along it.
template <class T, class A>
using replicated_over =
    refuse_if<!placement_traits<placement_on<typename T::layout, A>>::replicate,
              refused<because::value_is_not_replicated_over<A>, try_<convert_<Replicate<A>>>, typename T::layout>>;
/// The verdict on T as one of the values of E whose gradients are summed over Line.
template <class T, class E, class Line>
consteval auto summed_verdict() {
  if constexpr (!std::is_same_v<typename T::element, E>) {
    return type<refused<because::elements_differ, try_<use_one_element_type>, typename T::element, E>>{};
  } else {
    return
        []<class... As>(list<As...>) { return first_refusal<T, replicated_over<T, As>...>(); }(typename Line::axes{});
  }
}
template <class T, class E, class Line>
using summed_of = typename decltype(summed_verdict<operand<T>, E, Line>())::is;

/// Verdict list of one axis for a gradient that owes a sum over it.
template <class G, class A>
using owes_over = refuse_if<!std::is_same_v<placement_on<typename G::layout, A>, Partial<A>>,
                            refused<because::gradient_owes_no_sum<A>, try_<use_it_as_it_is>, typename G::layout>>;
/// The verdict on G as a gradient of T that is to be summed over Line.
template <class T, class G, class Line>
consteval auto gradient_verdict() {
  using owed = typename decltype(
      []<class... As>(list<As...>) { return first_refusal<T, owes_over<G, As>...>(); }(typename Line::axes{}))::is;
  if constexpr (!is_accepted<owed>) {
    return type<owed>{};
  } else {
    return alike_verdict<G, owed_over<T, Line>>();
  }
}
template <class T, class G, class Line>
using gradient_of = typename decltype(gradient_verdict<T, operand<G>, Line>())::is;

}  // namespace meshwise::detail
