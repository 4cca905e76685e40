// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <utility>

#include "meshwise/core/detail/pack_loops.hpp"
#include "meshwise/core/detail/pack_math.hpp"
#include "meshwise/core/detail/sorted.hpp"
#include "meshwise/tensor/detail/places.hpp"
#include "meshwise/tensor/detail/verdicts.hpp"
#include "meshwise/tensor/detail/walk.hpp"

namespace meshwise {

namespace detail {

/// The verdict on a soft-max over the last dim, which must be D and whole.
template <class T, class D>
consteval auto softmax_verdict() {
  using L = typename T::layout;
  if constexpr (!contains<D, dims_of<typename T::dims>>) {
    return type<refused<because::dim_not_in_the_tensor<D>, try_<name_a_dim_of_this_tensor>, typename T::dims>>{};
  } else if constexpr (!std::is_same_v<back<dims_of<typename T::dims>>, D>) {
    return type<refused<because::dim_is_not_last<D>, try_<put_it_last_in_the_dims>, typename T::dims>>{};
  } else {
    using verdict = map_of_reals<T>;
    return first_refusal<L, refuse_if<!is_accepted<verdict>, verdict>, whole_dim<D, L>>();
  }
}
template <class T, class D>
using softmax_of = typename decltype(softmax_verdict<operand<T>, D>())::is;

/// The verdict on a causal soft-max, which needs the queries too.
template <class T, class D>
consteval auto causal_softmax_verdict() {
  if constexpr (!contains<D, dims_of<typename T::dims>>) {
    return type<refused<because::dim_not_in_the_tensor<D>, try_<name_a_dim_of_this_tensor>, typename T::dims>>{};
  } else {
    return softmax_verdict<T, key<D>>();
  }
}
template <class T, class D>
using causal_softmax_of = typename decltype(causal_softmax_verdict<operand<T>, D>())::is;

/// The verdict on a gradient dp at probabilities p over D.
template <class G, class P, class D>
consteval auto softmax_backward_verdict() {
  using verdict = softmax_of<P, D>;
  if constexpr (!is_accepted<verdict>) {
    return type<verdict>{};
  } else {
    return alike_verdict<G, P>();
  }
}
template <class G, class P, class D>
using softmax_backward_of = typename decltype(softmax_backward_verdict<operand<G>, operand<P>, D>())::is;

/// Soft-max of the first `valid` of n numbers times a factor; the rest become 0. In place is fine.
template <class W, class E>
[[gnu::always_inline]] inline void softmax_row(W width, const E* in, E* out, std::size_t valid, std::size_t n,
                                               accumulate_t<E> factor) {
  using A = accumulate_t<E>;
  using P = typename W::template pack<A>;
  const P times = factor;
  const P top = max_packs(
      width, valid, -std::numeric_limits<A>::infinity(), [&](const P& x) { return times * x; }, in);
  // Whole packs where the row has room for them: what is beyond the valid ones is overwritten in the end.
  const std::size_t whole = smaller((valid + P::lanes - 1) / P::lanes * P::lanes, n);
  map_packs(
      width, out, whole, [&](const P& x) { return math::exp(times * x - top); }, in);
  // The largest element alone gives 1; a NaN makes the row NaN.
  const P scale = A(1) / sum_packs<A>(width, valid, Itself{}, out);
  map_packs(
      width, out, whole, [&](const P& x) { return x * scale; }, out);
  fill(out + valid, n - valid, E(0));
}

template <class T, class Valid>
auto softmax_rows(T&& x, double factor, const Valid& valid) {
  using X = bare<T>;
  using E = typename X::element;
  const E* in = x.local().data();
  const std::size_t n = x.ranges().back().size;
  const std::size_t total = x.local().size();
  auto result = result_like<typename X::layout>(std::forward<T>(x));
  E* out = written(result);
  in_packs([&](auto width) {
    for (std::size_t row = 0, at = 0; at < total; ++row, at += n) {
      softmax_row(width, in + at, out + at, smaller(valid(row), n), n, static_cast<accumulate_t<E>>(factor));
    }
  });
  return result;
}

}  // namespace detail

/// exp(factor x) divided by its sum over D, which is the last dim and whole.
///
/// x: any layout that does not shard D and is no Partial. factor: multiplies x first. Cost: three passes over each row
/// while it is in cache; an rvalue that shares its storage with nobody is written in place. As long as factor x is
/// finite, nothing overflows.
/// Errors: refused for a sharded D, a Partial and integers.
template <Dim D, AnyTensor T>
  requires detail::is_accepted<detail::softmax_of<T, D>>
[[nodiscard]] auto softmax(T&& x, double factor = 1.0) {
  const std::size_t n = x.ranges().back().size;
  return detail::softmax_rows(std::forward<T>(x), factor, [n](std::size_t) { return n; });
}
template <Dim D, AnyTensor T>
  requires(!detail::is_accepted<detail::softmax_of<T, D>>)
[[nodiscard]] auto softmax(T&& x, double = 1.0) -> detail::softmax_of<T, D>;

/// Soft-max over `key<D>` in which query position q sees the keys up to q only, by global positions.
///
/// x: attention scores with the dims D (queries, may be sharded) and, last and whole, key<D>. Cost and errors as
/// softmax; masked probabilities are 0.
template <Dim D, AnyTensor T>
  requires detail::is_accepted<detail::causal_softmax_of<T, D>>
[[nodiscard]] auto causal_softmax(T&& x, double factor = 1.0) {
  constexpr std::size_t d = detail::dim_index<D, detail::bare<T>>;
  const Positions queries = x.template positions<D>();
  std::size_t after = 1;
  for (std::size_t i = d + 1; i + 1 < detail::bare<T>::rank; ++i) after *= x.ranges()[i].size;
  return detail::softmax_rows(std::forward<T>(x), factor, [&queries, after](std::size_t row) {
    return queries.at(row / after % queries.size()) + 1;
  });
}
template <Dim D, AnyTensor T>
  requires(!detail::is_accepted<detail::causal_softmax_of<T, D>>)
[[nodiscard]] auto causal_softmax(T&& x, double = 1.0) -> detail::causal_softmax_of<T, D>;

/// The gradient at x of what follows p = softmax<D>(x, factor): factor * p * (dp - sum over D of p dp).
///
/// dp, p: placed alike. Right for causal_softmax too, whose masked entries have p = 0. Cost: two passes over each row;
/// a dp that is an rvalue and shares its storage with nobody is written in place. Errors: refused for a sharded D.
template <Dim D, class E, class Ds, class L, class S>
  requires detail::is_accepted<detail::softmax_of<Tensor<E, Ds, L, S>, D>>
[[nodiscard]] auto softmax_backward(Tensor<E, Ds, L, S> dp, const Tensor<E, Ds, L, S>& p, double factor = 1.0) {
  using A = accumulate_t<E>;
  detail::check_operands("softmax_backward", dp, p);
  const std::size_t n = p.ranges().back().size;
  const std::size_t total = p.local().size();
  const E* grad = dp.local().data();
  const E* prob = p.local().data();
  auto result = detail::result_like<L>(std::move(dp));
  E* out = detail::written(result);
  detail::in_packs([&](auto width) {
    using Pack = typename decltype(width)::template pack<A>;
    const Pack times = static_cast<A>(factor);
    for (std::size_t at = 0; at < total; at += n) {
      const Pack dot = detail::sum_packs<A>(
          width, n, [](const Pack& g, const Pack& q) { return g * q; }, grad + at, prob + at);
      detail::map_packs(
          width, out + at, n, [&](const Pack& g, const Pack& q) { return times * q * (g - dot); }, grad + at,
          prob + at);
    }
  });
  return result;
}
template <Dim D, AnyTensor G, AnyTensor P>
  requires(!detail::is_accepted<detail::softmax_backward_of<G, P, D>>)
[[nodiscard]] auto softmax_backward(const G& dp, const P& p, double factor = 1.0)
    -> detail::softmax_backward_of<G, P, D>;

}  // namespace meshwise
