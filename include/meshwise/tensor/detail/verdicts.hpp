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

/// The verdict on a result with these dims and layout: the tensor, or what is wrong with them together.
template <class E, class D, class L, class S>
consteval auto result_verdict() {
  using verdict = typename decltype(tensor_verdict<D, L>())::is;
  if constexpr (is_accepted<verdict>) {
    return type<accepted<Tensor<E, D, L, S>>>{};
  } else {
    return type<verdict>{};
  }
}

/// The remedy that makes a dim whole: its minor axes leave first.
template <class Axes>
using convert_to_whole = typename decltype(spelled(replicate_each(reversed(Axes{}))))::is;

/// How a local function treats Partial operands.
enum class Combining { additive, multiplicative, linear_in_first, nonlinear };

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
    using fix = std::conditional_t<a && b, fix_both, std::conditional_t<a, fix_a, fix_b>>;
    return list<refused<because::nonlinear_function_of_Partial<A>, fix, LA, LB>>{};
  } else if constexpr (kind == Combining::linear_in_first && b) {
    return list<refused<because::nonlinear_function_of_Partial<A>, fix_b, LA, LB>>{};
  } else if constexpr (kind == Combining::multiplicative || kind == Combining::linear_in_first) {
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
    return list<refused<because::Partial_cannot_meet_Replicate<A>, std::conditional_t<a, fix_a, fix_b>, LA, LB>>{};
  }
}

template <class... Es>
consteval list<axis_of<Es>...> bare_axes(list<Es...>) {
  return {};
}

/// What brings D from being sharded by the entries Now to being sharded by Wanted: the axes after those in common
/// leave, minor ones first, then the rest of Wanted joins.
template <class D, class... Now, class... Wanted>
consteval auto rearrange(list<Now...> now, list<Wanted...> wanted) {
  if constexpr (now.size != 0 && wanted.size != 0) {
    if constexpr (std::is_same_v<front<list<Now...>>, front<list<Wanted...>>>) {
      return rearrange<D>(without<front<list<Now...>>, list<Now...>>{},
                          without<front<list<Now...>>, list<Wanted...>>{});
    } else {
      return replicate_each(reversed(bare_axes(now))) + list<Shard<D, Wanted...>>{};
    }
  } else if constexpr (wanted.size != 0) {
    return list<Shard<D, Wanted...>>{};
  } else {
    return replicate_each(reversed(bare_axes(now)));
  }
}
template <class... Ps>
consteval type<convert_second_operand_<Ps...>> spelled_for_second(list<Ps...>) {
  return {};
}
/// The conversion of the second operand that places D as the first one does.
template <class D, class Wanted, class Now>
using place_second = typename decltype(spelled_for_second(rearrange<D>(Now{}, Wanted{})))::is;

/// Verdict list of one dim that both operands have: it must be placed alike.
template <class D, class LA, class LB>
using placed_alike = refuse_if<!std::is_same_v<shard_entries<LA, D>, shard_entries<LB, D>>,
                               refused<because::dim_placed_differently_in_the_operands<D>,
                                       try_<place_second<D, shard_entries<LA, D>, shard_entries<LB, D>>>, LA, LB>>;

/// What to say when the result of two operands would use an axis twice: one of them has to give it up.
template <class LA, class LB, class Refusal>
struct result_refused {
  using is = Refusal;
};
template <class LA, class LB, class A, class... Context>
struct result_refused<LA, LB, refused<because::axis_placed_twice<A>, Context...>> {
  using is = refused<because::axis_placed_twice<A>,
                     try_<convert_first_operand_<Replicate<A>>, or_<convert_second_operand_<Replicate<A>>>>, LA, LB>;
};

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

/// Reductions owed over a list of axes.
template <class Op = Sum, class... As>
consteval list<Partial<As, Op>...> partials_over(list<As...>) {
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
    return type<
        refused<because::elements_differ, try_<use_one_element_type>, typename A::element, typename B::element>>{};
  } else if constexpr (!std::is_same_v<grid_of<LA>, grid_of<LB>>) {
    return type<refused<because::meshes_differ, try_<bring_both_to_one_mesh>, LA, LB>>{};
  } else if constexpr (!is_subsequence(db{}, da{})) {
    using remedy = std::conditional_t<is_subsequence(da{}, db{}), put_the_operand_with_more_dims_first,
                                      give_both_the_same_dims_in_the_same_order>;
    return type<refused<because::dims_differ, try_<remedy>, typename A::dims, typename B::dims>>{};
  } else {
    return []<class... Axes, class... Ds>(list<Axes...>, list<Ds...>) {
      // The axes of a's dims that b lacks must be replicated in b: no dim of b can use them if all are placed alike.
      using layout =
          std::conditional_t<kind == Combining::multiplicative,
                             decltype(canonical_from<grid_of<LA>>(placements_of<LA>{} + partials_of<LB>{})), type<LA>>;
      using refusals =
          join<placed_alike<Ds, LA, LB>...,
               decltype(partials_meet<Axes, placement_on<LA, Axes>, placement_on<LB, Axes>, kind, LA, LB>())...>;
      if constexpr (refusals::size != 0) {
        return type<front<refusals>>{};
      } else if constexpr (!AnyLayout<typename layout::is>) {
        return result_refused<LA, LB, typename layout::is>{};
      } else {
        return type<accepted<typename layout::is>>{};
      }
    }(axes_of_layout<LA>{}, db{});
  }
}

template <class A, class B, Combining kind>
using elementwise_of = typename decltype(tensors_verdict<operand<A>, operand<B>, kind>())::is;

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
using map_of = typename decltype(map_verdict<typename operand<T>::layout, linear>())::is;

/// The same for a function of real numbers, whose values integers cannot hold.
template <class T, bool linear>
consteval auto map_of_reals_verdict() {
  using E = typename T::element;
  using verdict = map_of<T, linear>;
  if constexpr (is_accepted<verdict> && !FloatElement<E>) {
    return type<refused<because::function_of_real_numbers_on_integers<E>, try_<use_a_floating_point_element>,
                        typename T::layout>>{};
  } else {
    return type<verdict>{};
  }
}
template <class T, bool linear = false>
using map_of_reals = typename decltype(map_of_reals_verdict<operand<T>, linear>())::is;

/// The verdict on two tensors that have to be of one type; the remedy speaks of the first.
template <class A, class B>
consteval auto alike_verdict() {
  using LA = typename A::layout;
  using LB = typename B::layout;
  if constexpr (!std::is_same_v<typename A::element, typename B::element>) {
    return type<
        refused<because::elements_differ, try_<use_one_element_type>, typename A::element, typename B::element>>{};
  } else if constexpr (!std::is_same_v<grid_of<LA>, grid_of<LB>>) {
    return type<refused<because::meshes_differ, try_<bring_both_to_one_mesh>, LA, LB>>{};
  } else if constexpr (!std::is_same_v<typename A::dims, typename B::dims>) {
    return type<refused<because::dims_differ, try_<give_both_the_same_dims_in_the_same_order>, typename A::dims,
                        typename B::dims>>{};
  } else if constexpr (!std::is_same_v<LA, LB>) {
    return type<refused<because::layouts_differ, try_<needed_conversion<LA, LB>>, LA, LB>>{};
  } else {
    return type<accepted<LA>>{};
  }
}
template <class A, class B>
using alike_of = typename decltype(alike_verdict<operand<A>, operand<B>>())::is;

/// The verdict on converting a tensor that a verdict allowed.
template <class Verdict, class P>
consteval auto converted_verdict() {
  if constexpr (!is_accepted<Verdict>) {
    return type<Verdict>{};
  } else {
    using T = typename Verdict::is;
    using verdict = convert_verdict<T, P>;
    if constexpr (!is_accepted<verdict>) {
      return type<verdict>{};
    } else {
      return type<accepted<Tensor<typename T::element, typename T::dims, typename verdict::is, typename T::space>>>{};
    }
  }
}
template <class Verdict, class P>
using converted_of = typename decltype(converted_verdict<Verdict, P>())::is;

/// The first of two verdicts that refuses, or the second.
template <class First, class Second>
using both_of = std::conditional_t<is_accepted<First>, Second, First>;

/// Verdict list of a dim that an operation needs whole.
template <class D, class L>
using whole_dim = refuse_if<shard_axes<L, D>::size != 0,
                            refused<because::needs_the_whole_dim<D>, try_<convert_to_whole<shard_axes<L, D>>>, L>>;

}  // namespace meshwise::detail
