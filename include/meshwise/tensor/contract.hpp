// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "meshwise/core/detail/sorted.hpp"
#include "meshwise/core/gemm.hpp"
#include "meshwise/tensor/detail/einsum.hpp"
#include "meshwise/tensor/detail/verdicts.hpp"
#include "meshwise/tensor/detail/walk.hpp"

namespace meshwise {

namespace detail {

/// The cheaper remedy for a dim that Entries shard in one operand only: the other one, of layout L, takes its part,
/// which costs nothing, unless it uses the axes otherwise; then the first one is made whole.
template <class D, class L, template <class...> class Other, template <class...> class Own, class... Entries>
consteval auto side_to_convert(list<Entries...> entries) {
  if constexpr ((placement_traits<placement_on<L, axis_of<Entries>>>::replicate && ...)) {
    return type<Other<Shard<D, Entries...>>>{};
  } else {
    return []<class... Rs>(list<Rs...>) { return type<Own<Rs...>>{}; }(replicate_each(reversed(bare_axes(entries))));
  }
}

/// Verdict list of one dim that both operands have and that is summed.
template <class D, class LA, class LB>
consteval auto summed_alike() {
  using a = shard_entries<LA, D>;
  using b = shard_entries<LB, D>;
  if constexpr (std::is_same_v<a, b>) {
    return list<>{};
  } else if constexpr (a::size != 0 && b::size != 0) {
    return placed_alike<D, LA, LB>{};
  } else {
    using remedy = decltype([] {
      if constexpr (a::size != 0) {
        return side_to_convert<D, LB, convert_second_operand_, convert_first_operand_>(a{});
      } else {
        return side_to_convert<D, LA, convert_first_operand_, convert_second_operand_>(b{});
      }
    }());
    return list<refused<because::contraction_sharded_on_one_side<D>, try_<typename remedy::is>, LA, LB>>{};
  }
}

template <class Shared>
struct among {
  template <class D>
  struct is {
    static constexpr bool value = contains<D, Shared>;
  };
};

/// The layout of a contraction whose result has the dims in Result.
template <class A, class B, class Result>
consteval auto einsum_verdict() {
  using LA = typename A::layout;
  using LB = typename B::layout;
  using da = dims_of<typename A::dims>;
  using db = dims_of<typename B::dims>;
  using shared = decltype(filtered<among<db>::template is>(da{}));
  using summed = decltype(without_known<Result>(shared{}));
  using both_kept = decltype(without_known<summed>(shared{}));
  using lost = decltype(without_known<join<Result, shared>>(join<da, db>{}));
  using foreign = decltype(without_known<join<da, db>>(Result{}));
  using twice = repeated<Result>;
  if constexpr (!std::is_void_v<twice>) {
    return type<refused<because::dim_repeated<twice>, try_<name_each_dim_once>, typename A::dims, typename B::dims>>{};
  } else if constexpr (!std::is_same_v<typename A::element, typename B::element>) {
    return type<
        refused<because::elements_differ, try_<use_one_element_type>, typename A::element, typename B::element>>{};
  } else if constexpr (!std::is_same_v<grid_of<LA>, grid_of<LB>>) {
    return type<refused<because::meshes_differ, try_<bring_both_to_one_mesh>, LA, LB>>{};
  } else if constexpr (foreign::size != 0) {
    return type<refused<because::dim_in_neither_operand<front<foreign>>, try_<name_a_dim_of_this_tensor>,
                        typename A::dims, typename B::dims>>{};
  } else if constexpr (lost::size != 0) {
    return type<refused<because::summed_dim_only_in_one_operand<front<lost>>,
                        try_<keep_it_in_the_result_or_sum_it_first>, typename A::dims, typename B::dims>>{};
  } else {
    return []<class... Axes, class... Summed, class... Kept>(list<Axes...>, list<Summed...>, list<Kept...>) {
      using refusals = join<decltype(summed_alike<Summed, LA, LB>())..., placed_alike<Kept, LA, LB>...,
                            decltype(partials_meet<Axes, placement_on<LA, Axes>, placement_on<LB, Axes>,
                                                   Combining::multiplicative, LA, LB>())...>;
      if constexpr (refusals::size != 0) {
        return type<front<refusals>>{};
      } else {
        using owed = decltype(joined<shard_axes<LA, Summed>...>());
        using layout = typename decltype(canonical_from<grid_of<LA>>(placements_except<LA, list<Summed...>>{} +
                                                                     placements_except<LB, list<Summed..., Kept...>>{} +
                                                                     partials_over(owed{})))::is;
        if constexpr (!AnyLayout<layout>) {
          return result_refused<LA, LB, layout>{};
        } else {
          return result_verdict<typename A::element, dims_from<Result>, layout, typename A::space>();
        }
      }
    }(axes_of_layout<LA>{}, summed{}, both_kept{});
  }
}

template <class A, class B, class ResultDims>
using einsum_of = typename decltype(einsum_verdict<operand<A>, operand<B>, dims_of<ResultDims>>())::is;

/// The dims of contract<Summed...>(a, b): those of a that are not summed, then the new ones of b.
template <class A, class B, class... Summed>
using contracted_dims = dims_from<
    join<decltype(without_known<list<Summed...>>(dims_of<typename A::dims>{})),
         decltype(without_known<join<list<Summed...>, dims_of<typename A::dims>>>(dims_of<typename B::dims>{}))>>;

template <class A, class B, class... Summed>
consteval auto contract_verdict() {
  using da = dims_of<typename A::dims>;
  using db = dims_of<typename B::dims>;
  using nowhere = decltype(without_known<join<da, db>>(list<Summed...>{}));
  using once = decltype(without_known<decltype(filtered<among<db>::template is>(da{}))>(list<Summed...>{}));
  using twice = repeated<list<Summed...>>;
  if constexpr (!std::is_void_v<twice>) {
    return type<refused<because::dim_repeated<twice>, try_<name_each_dim_once>, typename A::dims, typename B::dims>>{};
  } else if constexpr (nowhere::size != 0) {
    return type<refused<because::dim_in_neither_operand<front<nowhere>>, try_<name_a_dim_of_both_operands>,
                        typename A::dims, typename B::dims>>{};
  } else if constexpr (once::size != 0) {
    return type<refused<because::summed_dim_only_in_one_operand<front<once>>, try_<name_a_dim_of_both_operands>,
                        typename A::dims, typename B::dims>>{};
  } else {
    return type<einsum_of<A, B, contracted_dims<A, B, Summed...>>>{};
  }
}
template <class A, class B, class... Summed>
using contract_of = typename decltype(contract_verdict<operand<A>, operand<B>, Summed...>())::is;

/// The labels of a dense local piece: dims numbered by their place in a list of all of them.
template <class All, class T>
Labels labels_of(const T& x) {
  Labels labels;
  std::size_t i = 0;
  [&]<class... Ds>(list<Ds...>) {
    [[maybe_unused]] const auto one = [&](int name) {
      // An empty dim further in would make the stride 0, which says that elements coincide.
      labels.add(name, static_cast<std::ptrdiff_t>(x.ranges()[i].size),
                 static_cast<std::ptrdiff_t>(detail::larger<std::size_t>(elements_after(x, i), 1)));
      ++i;
    };
    (one(index_of<Ds, All>), ...);
  }(dims_of<typename T::dims>{});
  return labels;
}

template <class Result, class A, class B>
Result einsum_local(const char* verb, const A& a, const B& b) {
  check_operands(verb, a, b);
  using all =
      join<dims_of<typename A::dims>, decltype(without_known<dims_of<typename A::dims>>(dims_of<typename B::dims>{}))>;
  Result c(a.mesh(), extents_of_both<typename Result::dims>(a, b), uninitialised{});
  const Gemm* gemm = a.mesh().gemm();
  using E = typename Result::element;
  einsum<E>(gemm != nullptr ? *gemm : plain_gemm(), accumulate_t<E>(1), a.local().data(), labels_of<all>(a),
            b.local().data(), labels_of<all>(b), accumulate_t<E>(0), written(c), labels_of<all>(c));
  return c;
}

}  // namespace detail

/// The product of a and b summed over the named dims, which both have: matrix product, batched or not.
///
/// Other dims that both have are batch dims. Result: the dims of a that are left, then those that only b has. A summed
/// dim that is sharded (in both alike) leaves a `Partial<axis>`; free dims keep their shards; one operand may be a
/// Partial sum. Cost: local only, matrix products of the mesh's Gemm on the calling thread, one allocation.
/// Errors: refused for a dim sharded on one side only or placed differently, two Partials of one axis, an axis that
/// would shard the result twice; different extents of a shared dim.
template <Dim... Summed, AnyTensor A, AnyTensor B>
  requires detail::is_accepted<detail::contract_of<A, B, Summed...>>
[[nodiscard]] auto contract(const A& a, const B& b) {
  return detail::einsum_local<typename detail::contract_of<A, B, Summed...>::is>("contract", a, b);
}
template <Dim... Summed, AnyTensor A, AnyTensor B>
  requires(!detail::is_accepted<detail::contract_of<A, B, Summed...>>)
[[nodiscard]] auto contract(const A& a, const B& b) -> detail::contract_of<A, B, Summed...>;

/// The same product by the dims of its result, in their order: dims of both operands that it lacks are summed.
///
/// `einsum<Dims<batch, key<seq>, heads, head_dim>>(probabilities, dout)`. Cost and errors as contract; a dim that only
/// one operand has must stay.
template <class ResultDims, AnyTensor A, AnyTensor B>
  requires detail::is_accepted<detail::einsum_of<A, B, ResultDims>>
[[nodiscard]] auto einsum(const A& a, const B& b) {
  return detail::einsum_local<typename detail::einsum_of<A, B, ResultDims>::is>("einsum", a, b);
}
template <class ResultDims, AnyTensor A, AnyTensor B>
  requires(!detail::is_accepted<detail::einsum_of<A, B, ResultDims>>)
[[nodiscard]] auto einsum(const A& a, const B& b) -> detail::einsum_of<A, B, ResultDims>;

}  // namespace meshwise
