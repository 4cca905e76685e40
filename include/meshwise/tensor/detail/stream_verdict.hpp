// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include "meshwise/tensor/detail/verdicts.hpp"
#include "meshwise/tensor/inside.hpp"

namespace meshwise::detail {

/// The verdict on streaming T along A: the piece of one coordinate, on the mesh without A.
template <class T, class A>
consteval auto piece_verdict() {
  using verdict = inside_of<T, A>;
  if constexpr (!is_accepted<verdict>) {
    return type<verdict>{};
  } else if constexpr (!placement_traits<placement_on<typename T::layout, A>>::shard) {
    return type<refused<because::axis_cuts_no_dim<A>, try_<use_inside>, typename T::layout>>{};
  } else {
    return type<verdict>{};
  }
}
template <class T, class A>
using piece_of = typename decltype(piece_verdict<T, A>())::is;

/// What a function of pieces returns, in a list; none if it does not take them.
template <class F, class... Pieces>
consteval auto result_of_pieces() {
  if constexpr (std::is_invocable_v<F, Pieces..., int, const Positions&>) {
    return list<std::remove_cvref_t<std::invoke_result_t<F, Pieces..., int, const Positions&>>>{};
  } else if constexpr (std::is_invocable_v<F, Pieces..., int>) {
    return list<std::remove_cvref_t<std::invoke_result_t<F, Pieces..., int>>>{};
  } else {
    return list<>{};
  }
}

/// What the function of a stream returns, as a list of what each of them is to be.
template <class R>
struct contributions {
  using is = list<R>;
  static std::tuple<R> pack(R&& result) { return {std::move(result)}; }
  template <class Sum>
  static Sum unpack(Sum&& sum) {
    return std::move(sum);
  }
};
template <>
struct contributions<void> {
  using is = list<>;
};
template <class... Rs>
struct contributions<std::tuple<Rs...>> {
  using is = list<bare<Rs>...>;
  static std::tuple<bare<Rs>...> pack(std::tuple<Rs...>&& result) { return std::move(result); }
  template <class... Sums>
  static std::tuple<Sums...> unpack(Sums&&... sums) {
    return {std::move(sums)...};
  }
};

/// The verdict on a contribution Y to what is cut by `By`: the sum over the mesh.
template <class Y, class By, class Grid>
consteval auto contribution_verdict() {
  if constexpr (AnyTensor<Y>) {
    return type<outside_of<Y, By, Grid>>{};
  } else {
    return type<refused<because::function_contributes_no_tensor<Y>, try_<return_nothing_or_a_tensor_like_the_piece>>>{};
  }
}

template <class F, class A, class First, class... Others>
consteval auto function_verdict() {
  using results = decltype(result_of_pieces<const F&, const typename piece_of<First, A>::is&,
                                            const typename piece_of<Others, A>::is&...>());
  if constexpr (results::size == 0) {
    using when_mutable = decltype(result_of_pieces<std::remove_const_t<F>&, const typename piece_of<First, A>::is&,
                                                   const typename piece_of<Others, A>::is&...>());
    if constexpr (when_mutable::size != 0) {
      return type<refused<because::function_is_mutable, try_<capture_by_reference_instead_of_mutable>>>{};
    } else {
      return type<refused<because::function_does_not_take_the_pieces, try_<take_a_piece_of_each_tensor_and_an_int>,
                          typename piece_of<First, A>::is, typename piece_of<Others, A>::is...>>{};
    }
  } else {
    return []<class... Ys>(list<Ys...>) {
      return first_of(
          joined<
              refuse_if<!is_accepted<typename decltype(contribution_verdict<Ys, placement_on<typename First::layout, A>,
                                                                            typename First::grid>())::is>,
                        typename decltype(contribution_verdict<Ys, placement_on<typename First::layout, A>,
                                                               typename First::grid>())::is>...,
              list<accepted<front<results>>>>());
    }(typename contributions<front<results>>::is{});
  }
}

/// The verdict on streaming tensors along A through F: what F returns.
template <class F, class A, class First, class... Others>
consteval auto stream_verdict() {
  using cut = placement_on<typename First::layout, A>;
  using apart = refused<because::axis_cuts_the_tensors_differently<A>, try_<convert_or_rename_to_cut_them_alike>,
                        typename First::layout, typename Others::layout...>;
  using refusals = join<refuse_if<!is_accepted<piece_of<First, A>>, piece_of<First, A>>,
                        refuse_if<!is_accepted<piece_of<Others, A>>, piece_of<Others, A>>...,
                        refuse_if<!(std::is_same_v<placement_on<typename Others::layout, A>, cut> && ...), apart>>;
  if constexpr (refusals::size != 0) {
    return type<front<refusals>>{};
  } else {
    return function_verdict<F, A, First, Others...>();
  }
}
template <class F, class A, AnyTensor... Ts>
using stream_along = typename decltype(stream_verdict<F, A, bare<Ts>...>())::is;

}  // namespace meshwise::detail
