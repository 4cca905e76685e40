// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "meshwise/core/detail/pack_loops.hpp"
#include "meshwise/core/detail/sorted.hpp"
#include "meshwise/tensor/detail/verdicts.hpp"
#include "meshwise/tensor/detail/walk.hpp"

namespace meshwise {

namespace detail {

template <class Op, class A, class P, class L>
consteval auto reduction_meets() {
  if constexpr (!is_partial<P>) {
    return list<>{};
  } else {
    return refuse_if < !std::is_same_v<typename placement_traits<P>::op, Op> || !Op::commutative,
           refused < because::nonlinear_function_of_Partial<A>, try_<convert_<Replicate<A>>>, L >> {};
  }
}

/// The layout after reducing over some dims: what sharded them owes a reduction now.
template <class L, class Op, class... Summed>
consteval auto reduced_layout(list<Summed...>) {
  constexpr auto owed_axes = joined<shard_axes<L, Summed>...>();
  return []<class... Ps>(auto owes, list<Ps...>) {
    return canonical_from<grid_of<L>>(
        joined<std::conditional_t<shards_any<list<Summed...>, Ps>(), list<>, list<Ps>>...>() + partials_over<Op>(owes));
  }(owed_axes, placements_of<L>{});
}

template <class T, class Op, class... Ds>
consteval auto reduce_verdict() {
  using L = typename T::layout;
  using dims = dims_of<typename T::dims>;
  using foreign = decltype(without_known<dims>(list<Ds...>{}));
  using twice = repeated<list<Ds...>>;
  if constexpr (!std::is_void_v<twice>) {
    return type<refused<because::dim_repeated<twice>, try_<name_each_dim_once>, typename T::dims>>{};
  } else if constexpr (foreign::size != 0) {
    return type<
        refused<because::dim_not_in_the_tensor<front<foreign>>, try_<name_a_dim_of_this_tensor>, typename T::dims>>{};
  } else if constexpr (!Reduces<Op, typename T::element>) {
    return type<refused<because::reduction_is_not_defined_on_this_element<Op, typename T::element>,
                        try_<use_an_element_that_the_reduction_is_defined_on>, L>>{};
  } else {
    return []<class... Axes>(list<Axes...>) {
      using kept = decltype(without_known<list<Ds...>>(dims{}));
      using layout = typename decltype(reduced_layout<L, Op>(list<Ds...>{}))::is;
      using result = Tensor<typename T::element, dims_from<kept>, layout, typename T::space>;
      return first_refusal<result, decltype(reduction_meets<Op, Axes, placement_on<L, Axes>, L>())...,
                           std::conditional_t<Op::commutative, list<>, whole_dim<Ds, L>>...>();
    }(axes_of_layout<L>{});
  }
}
template <class T, class Op, class... Ds>
using reduce_of = typename decltype(reduce_verdict<operand<T>, Op, Ds...>())::is;

struct Unchanged {
  template <class A>
  A operator()(A value) const {
    return value;
  }
};

/// Reduces x over the dims that Result lacks; then finish(reduced) in the accumulate type, before it is rounded.
template <class Op, class Result, class T, class Finish>
Result reduce_local(const T& x, const Finish& finish) {
  using E = typename T::element;
  using A = accumulate_t<E>;
  Result result(x.mesh(), extents_from<typename Result::dims>(x), uninitialised{});
  E* out = written(result);
  const std::size_t n = result.local().size();
  std::vector<A> wide;
  A* sums;
  if constexpr (std::is_same_v<A, E>) {
    sums = out;
  } else {
    wide.resize(n);
    sums = wide.data();
  }
  fill(sums, n, static_cast<A>(Op::template identity<E>()));
  const E* in = x.local().data();
  walk_beside<typename Result::dims>(x).each(
      [&](std::size_t first, std::size_t second, std::size_t count, std::size_t stride) {
        const E* row = in + first;
        if constexpr (std::is_same_v<Op, Sum> && FloatElement<E>) {
          in_packs([&](auto width) {
            if (stride == 1) {
              map_packs(
                  width, sums + second, count, [](const auto& a, const auto& b) { return a + b; }, sums + second, row);
            } else {
              sums[second] += sum_packs<A>(width, count, Itself{}, row);
            }
          });
        } else if (stride == 1) {
          for (std::size_t i = 0; i < count; ++i) {
            sums[second + i] = Op::apply(sums[second + i], static_cast<A>(row[i]));
          }
        } else if constexpr (!Op::commutative) {
          for (std::size_t i = 0; i < count; ++i) sums[second] = Op::apply(sums[second], static_cast<A>(row[i]));
        } else {
          // Eight running values: enough for the adder's latency, and a shorter chain of roundings.
          A part[8];
          fill(part, 8, static_cast<A>(Op::template identity<E>()));
          std::size_t i = 0;
          for (; i + 8 <= count; i += 8) {
            for (std::size_t k = 0; k < 8; ++k) part[k] = Op::apply(part[k], static_cast<A>(row[i + k]));
          }
          for (; i < count; ++i) part[0] = Op::apply(part[0], static_cast<A>(row[i]));
          for (std::size_t k = 1; k < 8; ++k) part[0] = Op::apply(part[0], part[k]);
          sums[second] = Op::apply(sums[second], part[0]);
        }
      });
  if constexpr (!std::is_same_v<A, E> || !std::is_same_v<Finish, Unchanged>) {
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<E>(finish(sums[i]));
  }
  return result;
}

}  // namespace detail

/// Reduces a tensor over the named dims: `reduce<Max, vocab>(logits)`.
///
/// Op: any Reduction that is defined on the element. x: any layout; a Partial only of the same Op. Result: x without
/// those dims; axes that sharded them are `Partial<axis, Op>`. Cost: one pass, one allocation; narrow floats accumulate
/// in float. The order of additions depends on the local extents only; what is not commutative is combined in row-major
/// order. Errors: refused for a Partial of another reduction, and for one that is not commutative where ranks share a
/// dim or owe it.
template <Reduction Op, Dim... Ds, AnyTensor T>
  requires detail::is_accepted<detail::reduce_of<T, Op, Ds...>>
[[nodiscard]] auto reduce(const T& x) {
  return detail::reduce_local<Op, typename detail::reduce_of<T, Op, Ds...>::is>(x, detail::Unchanged{});
}
template <Reduction Op, Dim... Ds, AnyTensor T>
  requires(!detail::is_accepted<detail::reduce_of<T, Op, Ds...>>)
[[nodiscard]] auto reduce(const T& x) -> detail::reduce_of<T, Op, Ds...>;

/// The sum over the named dims; see reduce. For a mean see mean.hpp.
template <Dim... Ds, AnyTensor T>
  requires detail::is_accepted<detail::reduce_of<T, Sum, Ds...>>
[[nodiscard]] auto sum(const T& x) { return reduce<Sum, Ds...>(x); }
template <Dim... Ds, AnyTensor T>
  requires(!detail::is_accepted<detail::reduce_of<T, Sum, Ds...>>)
[[nodiscard]] auto sum(const T& x) -> detail::reduce_of<T, Sum, Ds...>;

/// The largest element over the named dims; see reduce.
template <Dim... Ds, AnyTensor T>
  requires detail::is_accepted<detail::reduce_of<T, Max, Ds...>>
[[nodiscard]] auto max(const T& x) { return reduce<Max, Ds...>(x); }
template <Dim... Ds, AnyTensor T>
  requires(!detail::is_accepted<detail::reduce_of<T, Max, Ds...>>)
[[nodiscard]] auto max(const T& x) -> detail::reduce_of<T, Max, Ds...>;

/// The smallest element over the named dims; see reduce.
template <Dim... Ds, AnyTensor T>
  requires detail::is_accepted<detail::reduce_of<T, Min, Ds...>>
[[nodiscard]] auto min(const T& x) { return reduce<Min, Ds...>(x); }
template <Dim... Ds, AnyTensor T>
  requires(!detail::is_accepted<detail::reduce_of<T, Min, Ds...>>)
[[nodiscard]] auto min(const T& x) -> detail::reduce_of<T, Min, Ds...>;

}  // namespace meshwise
