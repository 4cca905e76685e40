// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "meshwise/tensor/convert.hpp"

namespace meshwise::detail {

/// The first refusal among lists of verdicts, or accepted<Result>. Each list is empty or holds one refusal.
template <class Result, class... Lists>
consteval auto first_refusal() {
  return first_of(join<Lists..., list<accepted<Result>>>{});
}

template <bool Bad, class Refusal>
using refuse_if = std::conditional_t<Bad, list<Refusal>, list<>>;

template <class... As>
consteval auto replicate_all(list<As...>) {
  return type<convert_<Replicate<As>...>>{};
}
/// The remedy that makes a dim whole.
template <class Axes>
using convert_to_whole = typename decltype(replicate_all(Axes{}))::is;

/// How a local function treats Partial operands.
enum class Combining { additive, multiplicative, nonlinear };

template <class P>
inline constexpr bool is_partial = placement_traits<P>::partial;

/// Verdict lists of one axis for an operation on operands with placements PA and PB.
template <class A, class PA, class PB, Combining kind, class LA, class LB>
consteval auto partials_meet() {
  using fix_a = try_<convert_first_operand_<Replicate<A>>>;
  using fix_b = try_<convert_second_operand_<Replicate<A>>>;
  using fix_both = try_<convert_both_operands_<Replicate<A>>>;
  constexpr bool a = is_partial<PA>, b = is_partial<PB>;
  if constexpr (!a && !b) {
    return list<>{};
  } else if constexpr (kind == Combining::nonlinear) {
    return list<
        refused<because::nonlinear_function_of_Partial<A>, std::conditional_t<a, fix_a, fix_b>, LA, LB>>{};
  } else if constexpr (kind == Combining::multiplicative) {
    if constexpr (a && b) {
      return list<refused<because::function_of_two_Partials_is_not_linear<A>, fix_both, LA, LB>>{};
    } else {
      using op = typename placement_traits<std::conditional_t<a, PA, PB>>::op;
      return refuse_if<!op::linear, refused<because::nonlinear_function_of_Partial<A>,
                                            std::conditional_t<a, fix_a, fix_b>, LA, LB>>{};
    }
  } else if constexpr (a && b) {
    using op = typename placement_traits<PA>::op;
    using differ = refused<because::Partials_have_different_reductions<A>, fix_both, LA, LB>;
    using nonlinear = refused<because::nonlinear_function_of_Partial<A>, fix_both, LA, LB>;
    return join<refuse_if<!std::is_same_v<PA, PB>, differ>, refuse_if<!op::linear, nonlinear>>{};
  } else {
    return list<
        refused<because::Partial_cannot_meet_Replicate<A>, std::conditional_t<a, fix_a, fix_b>, LA, LB>>{};
  }
}

/// The conversion of the second operand that shards D over these axes, or makes it whole if there are none.
template <class D, class Axes, class... Now>
consteval auto place_second(list<Now...>) {
  if constexpr (Axes::size != 0) {
    return type<convert_second_operand_<shard_over<D, Axes>>>{};
  } else {
    return type<convert_second_operand_<Replicate<Now>...>>{};
  }
}

/// Verdict list of one dim that both operands have: it must be placed alike.
template <class D, class LA, class LB>
using placed_alike =
    refuse_if<!std::is_same_v<shard_axes<LA, D>, shard_axes<LB, D>>,
              refused<because::dim_placed_differently_in_the_operands<D>,
                      try_<typename decltype(place_second<D, shard_axes<LA, D>>(shard_axes<LB, D>{}))::is>, LA, LB>>;

/// The Partial placements of a layout, as a list.
template <class P>
struct keep_partial {
  static constexpr bool value = is_partial<P>;
};
template <class L>
using partials_of = decltype(filtered<keep_partial>(placements_of<L>{}));

template <class L>
inline constexpr bool has_partial = partials_of<L>::size != 0;

/// Whether P shards one of the dims.
template <class Ds, class P>
consteval bool shards_any() {
  if constexpr (placement_traits<P>::shard) {
    return contains<typename placement_traits<P>::dim, Ds>;
  } else {
    return false;
  }
}

template <class Dropped>
struct keep_placement {
  template <class P>
  struct is {
    static constexpr bool value = !shards_any<Dropped, P>();
  };
};
/// The placements of L except the shards of the dims in Dropped.
template <class L, class Dropped>
using placements_except = decltype(filtered<keep_placement<Dropped>::template is>(placements_of<L>{}));

/// Partial sums over a list of axes.
template <class... As>
consteval list<Partial<As>...> partials_over(list<As...>) {
  return {};
}

/// Whether every dim of Small stands in Large, in the same order.
template <class... Large>
consteval bool is_subsequence(list<>, list<Large...>) {
  return true;
}
template <class S, class... Small>
consteval bool is_subsequence(list<S, Small...>, list<>) {
  return false;
}
template <class S, class... Small, class L, class... Large>
consteval bool is_subsequence(list<S, Small...>, list<L, Large...>) {
  if constexpr (std::is_same_v<S, L>) {
    return is_subsequence(list<Small...>{}, list<Large...>{});
  } else {
    return is_subsequence(list<S, Small...>{}, list<Large...>{});
  }
}

/// The verdict on an element-wise function of a and b, where b has the dims of a or fewer and is repeated over the
/// others: the layout that results.
template <class A, class B, Combining kind>
consteval auto tensors_verdict() {
  using LA = typename A::layout;
  using LB = typename B::layout;
  using da = dims_of<typename A::dims>;
  using db = dims_of<typename B::dims>;
  if constexpr (!std::is_same_v<typename A::element, typename B::element>) {
    return type<refused<because::elements_differ, try_<>, typename A::element, typename B::element>>{};
  } else if constexpr (!std::is_same_v<grid_of<LA>, grid_of<LB>>) {
    return type<refused<because::meshes_differ, try_<>, LA, LB>>{};
  } else if constexpr (!is_subsequence(db{}, da{})) {
    return type<refused<because::dims_differ, try_<rename_one_of_them_with_key>, typename A::dims,
                        typename B::dims>>{};
  } else {
    return []<class... Axes, class... Ds>(list<Axes...>, list<Ds...>) {
      // The axes of a's dims that b lacks must be replicated in b: no dim of b can use them if all are placed alike.
      using layout = std::conditional_t<kind == Combining::multiplicative,
                                        decltype(canonical_from<grid_of<LA>>(
                                            placements_of<LA>{} + partials_of<LB>{})),
                                        type<LA>>;
      using refusals =
          join<placed_alike<Ds, LA, LB>...,
               decltype(partials_meet<Axes, placement_on<LA, Axes>, placement_on<LB, Axes>, kind, LA, LB>())...>;
      if constexpr (refusals::size != 0) {
        return type<front<refusals>>{};
      } else if constexpr (!AnyLayout<typename layout::is>) {
        return layout{};
      } else {
        return type<accepted<typename layout::is>>{};
      }
    }(axes_of_layout<LA>{}, db{});
  }
}

// Compilers may form the return type of an operator before they check that its operands are tensors.
template <class A, class B, Combining kind>
consteval auto elementwise_verdict() {
  if constexpr (AnyTensor<A> && AnyTensor<B>) {
    return tensors_verdict<A, B, kind>();
  } else {
    return type<void>{};
  }
}
template <class A, class B, Combining kind>
using elementwise_of = typename decltype(elementwise_verdict<bare<A>, bare<B>, kind>())::is;

/// Verdict list of one axis for a function of one tensor alone.
template <class A, class P, bool linear, class L>
consteval auto partial_meets_function() {
  if constexpr (!is_partial<P>) {
    return list<>{};
  } else if constexpr (linear && placement_traits<P>::op::linear) {
    return list<>{};
  } else {
    return list<refused<because::nonlinear_function_of_Partial<A>, try_<convert_<Replicate<A>>>, L>>{};
  }
}

/// The verdict on a function of one tensor alone: its layout stays.
template <class L, bool linear>
consteval auto map_verdict() {
  return []<class... Axes>(list<Axes...>) {
    return first_refusal<L, decltype(partial_meets_function<Axes, placement_on<L, Axes>, linear, L>())...>();
  }(axes_of_layout<L>{});
}
template <class T, bool linear = false>
using map_of = typename decltype(map_verdict<typename bare<T>::layout, linear>())::is;

/// Verdict list of a dim that an operation needs whole.
template <class D, class L>
using whole_dim = refuse_if<shard_axes<L, D>::size != 0,
                            refused<because::needs_the_whole_dim<D>, try_<convert_to_whole<shard_axes<L, D>>>, L>>;

}  // namespace meshwise::detail
