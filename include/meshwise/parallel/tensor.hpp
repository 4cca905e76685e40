// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "meshwise/tensor/backward.hpp"
#include "meshwise/tensor/contract.hpp"
#include "meshwise/tensor/elementwise.hpp"
#include "meshwise/tensor/reductions.hpp"
#include "meshwise/tensor/start_convert.hpp"

namespace meshwise {

/// The gradients of a linear layer.
template <class X, class Weight, class Bias>
struct LinearBackward {
  X x;
  Weight weight;
  Bias bias;
};

namespace detail {

/// The sum over all dims of T but those in Kept.
template <class Kept, class T>
auto sum_over_all_but(const T& x) {
  return [&]<class... Ds>(list<Ds...>) {
    return sum<Ds...>(x);
  }(decltype(without_known<Kept>(dims_of<typename T::dims>{})){});
}

/// The gradient of the bias b, given that of x W + b.
template <class X, class Weight, class G>
auto bias_gradient(const G& dy) {
  using rows = decltype(without_known<dims_of<typename Weight::dims>>(dims_of<typename X::dims>{}));
  return sum_over_all_but<decltype(without_known<rows>(dims_of<typename G::dims>{}))>(dy);
}

/// The gradients of x W + b, given those at x W and at the sum, which may be placed differently.
template <class Z, class G, class X, class Weight>
auto linear_gradients(const Z& dz, const G& dy, const X& x, const Weight& weight) {
  auto dx = einsum<typename X::dims>(dz, weight);
  auto dw = einsum<typename Weight::dims>(x, dz);
  auto db = bias_gradient<X, Weight>(dy);
  return LinearBackward<decltype(dx), decltype(dw), decltype(db)>{std::move(dx), std::move(dw), std::move(db)};
}

/// What was converted at once, for who would wait for it.
template <class T>
struct Converted {
  T value;
  T wait() { return std::move(value); }
};

/// Starts a conversion, or performs it if it is none that can be in flight.
template <class... Ps, class T>
auto started(T&& x) {
  if constexpr (is_accepted<start_convert_verdict<bare<T>, Ps...>>) {
    return start_convert<Ps...>(std::forward<T>(x));
  } else {
    auto result = convert<Ps...>(std::forward<T>(x));
    return Converted<decltype(result)>{std::move(result)};
  }
}

/// A verdict on an addition, where the second operand is the bias to whoever called.
template <class Verdict>
struct about_bias {
  using is = Verdict;
};
template <class Because, class... Ps, class... Context>
struct about_bias<refused<Because, try_<convert_second_operand_<Ps...>>, Context...>> {
  using is = refused<Because, try_<convert_bias_<Ps...>>, Context...>;
};

/// The verdict on adding a bias to a tensor that a verdict allowed.
template <class Verdict, class Bias>
consteval auto biased_verdict() {
  if constexpr (!is_accepted<Verdict>) {
    return type<Verdict>{};
  } else {
    return type<typename about_bias<elementwise_of<typename Verdict::is, Bias, Combining::additive>>::is>{};
  }
}
template <class X, class Weight, class Bias, class... Summed>
using column_linear_of = typename decltype(biased_verdict<contract_of<X, Weight, Summed...>, Bias>())::is;

template <class P, class X, class Weight, class Bias, class... Summed>
using row_linear_of = typename decltype(biased_verdict<converted_of<contract_of<X, Weight, Summed...>, P>, Bias>())::is;

template <class G, class X, class Weight>
using column_linear_backward_of =
    both_of<einsum_of<G, Weight, typename operand<X>::dims>, einsum_of<X, G, typename operand<Weight>::dims>>;

/// The verdict on converting a tensor that a verdict allowed, by several placements.
template <class Verdict, class... Ps>
consteval auto converted_by_all() {
  if constexpr (!is_accepted<Verdict>) {
    return type<Verdict>{};
  } else {
    return type<convert_verdict<typename Verdict::is, Ps...>>{};
  }
}
template <class G, class X, class Weight, class... To>
using column_linear_backward_to_of =
    both_of<column_linear_backward_of<G, X, Weight>,
            typename decltype(converted_by_all<einsum_of<G, Weight, typename operand<X>::dims>, To...>())::is>;

template <class G, class X, class Weight>
using row_linear_backward_of = backward_through<einsum_of<X, Weight, typename operand<G>::dims>, G>;

}  // namespace detail

/// x W + b with W split by output: every rank along the axis computes its own outputs from the whole input.
///
/// Summed: the input dims. x: [rows..., Summed...], whole along the axis that splits W; weight: [Summed..., out...]
/// with `Shard<out, tp>`; bias: [out...], split alike. Result: [rows..., out...], split alike. Cost: local only.
/// Source: Shoeybi et al., "Megatron-LM", arXiv 1909.08053, section 3 (column-parallel).
template <Dim... Summed, AnyTensor X, AnyTensor Weight, AnyTensor Bias>
  requires detail::is_accepted<detail::column_linear_of<X, Weight, Bias, Summed...>>
auto column_linear(const X& x, const Weight& weight, const Bias& bias) { return contract<Summed...>(x, weight) + bias; }
template <Dim... Summed, AnyTensor X, AnyTensor Weight, AnyTensor Bias>
  requires(!detail::is_accepted<detail::column_linear_of<X, Weight, Bias, Summed...>>)
auto column_linear(const X& x, const Weight& weight, const Bias& bias)
    -> detail::column_linear_of<X, Weight, Bias, Summed...>;

/// The gradients of column_linear.
///
/// dy: placed like the result; x, weight: as they were given. Returns dx, which is `Partial` over the axis that splits
/// the weight (each rank knows the part that its own outputs contribute: convert it), and the gradients of weight and
/// bias, split like them and Partial over the axes that shard the rows. Cost: local only.
template <AnyTensor G, AnyTensor X, AnyTensor Weight>
  requires detail::is_accepted<detail::column_linear_backward_of<G, X, Weight>>
auto column_linear_backward(const G& dy, const X& x, const Weight& weight) {
  return detail::linear_gradients(dy, dy, x, weight);
}

template <AnyTensor G, AnyTensor X, AnyTensor Weight>
  requires(!detail::is_accepted<detail::column_linear_backward_of<G, X, Weight>>)
auto column_linear_backward(const G& dy, const X& x, const Weight& weight)
    -> detail::column_linear_backward_of<G, X, Weight>;

/// The same, with the gradient of the input brought to `To` while those of weight and bias are computed.
///
/// To: what `convert` would be told, mostly the placement that the input had before it was gathered: `Shard<seq, tp>`
/// (reduce-scatter: sequence parallelism), or `Replicate<tp>` (all-reduce). Cost: that conversion, in flight during the
/// second matrix product if it is one that `start_convert` can start; the bits are those of the serial order. Several
/// layers with one input owe one sum: add up their `einsum<X::dims>(dy, weight)` first, as transformer.hpp does.
/// Ordering: collective along the axes that change. Source: as column_linear; Megatron-LM overlaps the two alike.
template <Placement... To, AnyTensor G, AnyTensor X, AnyTensor Weight>
  requires(sizeof...(To) > 0 && detail::is_accepted<detail::column_linear_backward_to_of<G, X, Weight, To...>>)
auto column_linear_backward(const G& dy, const X& x, const Weight& weight) {
  auto sum = detail::started<To...>(einsum<typename X::dims>(dy, weight));
  auto dw = einsum<typename Weight::dims>(x, dy);
  auto db = detail::bias_gradient<X, Weight>(dy);
  auto dx = sum.wait();
  return LinearBackward<decltype(dx), decltype(dw), decltype(db)>{std::move(dx), std::move(dw), std::move(db)};
}
template <Placement... To, AnyTensor G, AnyTensor X, AnyTensor Weight>
  requires(sizeof...(To) > 0 && !detail::is_accepted<detail::column_linear_backward_to_of<G, X, Weight, To...>>)
auto column_linear_backward(const G& dy, const X& x, const Weight& weight)
    -> detail::column_linear_backward_to_of<G, X, Weight, To...>;

/// x W + b with W split by input: the ranks' products are partial sums, which `To` brings to their layout, and the bias
/// is added once, after the sum.
///
/// To: `Replicate<tp>` (all-reduce) or `Shard<seq, tp>` (reduce-scatter: sequence parallelism). Summed: the input dims.
/// x: [rows..., Summed...] split like weight: [Summed..., out...] with `Shard<one of Summed, tp>`; bias: [out...],
/// replicated. Cost: one conversion of the result. Source: as column_linear (row-parallel).
template <Placement To, Dim... Summed, AnyTensor X, AnyTensor Weight, AnyTensor Bias>
  requires detail::is_accepted<detail::row_linear_of<To, X, Weight, Bias, Summed...>>
auto row_linear(const X& x, const Weight& weight, const Bias& bias) {
  return convert<To>(contract<Summed...>(x, weight)) + bias;
}
template <Placement To, Dim... Summed, AnyTensor X, AnyTensor Weight, AnyTensor Bias>
  requires(!detail::is_accepted<detail::row_linear_of<To, X, Weight, Bias, Summed...>>)
auto row_linear(const X& x, const Weight& weight, const Bias& bias)
    -> detail::row_linear_of<To, X, Weight, Bias, Summed...>;

/// The gradients of row_linear.
///
/// dy: placed like the result; x, weight: as they were given. Returns dx split like x, and the gradients of weight and
/// bias, Partial over the axes that shard the rows of x and dy. Cost: the backward of the conversion: an all-gather of
/// dy where the result was reduce-scattered, nothing where it was all-reduced.
template <AnyTensor G, AnyTensor X, AnyTensor Weight>
  requires detail::is_accepted<detail::row_linear_backward_of<G, X, Weight>>
auto row_linear_backward(const G& dy, const X& x, const Weight& weight) {
  using Produced = typename detail::einsum_of<X, Weight, typename G::dims>::is;
  return detail::linear_gradients(backward_to<Produced>(dy), dy, x, weight);
}
template <AnyTensor G, AnyTensor X, AnyTensor Weight>
  requires(!detail::is_accepted<detail::row_linear_backward_of<G, X, Weight>>)
auto row_linear_backward(const G& dy, const X& x, const Weight& weight) -> detail::row_linear_backward_of<G, X, Weight>;

}  // namespace meshwise
