// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "meshwise/core/math.hpp"
#include "meshwise/tensor/detail/lanes.hpp"
#include "meshwise/tensor/reductions.hpp"

namespace meshwise {

/// What layer_norm returns: the result, and per normalised row what its backward needs.
template <class Y, class Statistics>
struct Normalized {
  Y y;
  Statistics mean;
  Statistics scale;  ///< 1 / sqrt(variance + epsilon)
};

/// The gradients of layer_norm.
template <class X, class Parameter>
struct NormalizedBackward {
  X x;
  Parameter gain;  ///< Partial over every axis that shards the rows: a sum is owed
  Parameter bias;
};

namespace detail {

/// The verdict on normalising the last dim D of X with a gain and a bias that have only that dim.
template <class X, class Parameter, class Bias>
consteval auto layer_norm_verdict() {
  using L = typename X::layout;
  using D = back<dims_of<typename X::dims>>;
  if constexpr (!std::is_same_v<dims_of<typename Parameter::dims>, list<D>>) {
    return type<refused<because::dims_differ, try_<give_the_parameters_the_last_dim_only>, typename X::dims,
                        typename Parameter::dims>>{};
  } else if constexpr (!is_accepted<alike_of<Parameter, Bias>>) {
    return type<alike_of<Parameter, Bias>>{};
  } else {
    using rows = dims_from<without<D, dims_of<typename X::dims>>>;
    using A = accumulate_t<typename X::element>;
    using verdict = map_of_reals<X>;
    using beside = elementwise_of<X, Parameter, Combining::nonlinear>;
    using refusals =
        join<refuse_if<!is_accepted<verdict>, verdict>, whole_dim<D, L>, refuse_if<!is_accepted<beside>, beside>>;
    if constexpr (refusals::size != 0) {
      return type<front<refusals>>{};
    } else {
      return type<accepted<Normalized<X, Tensor<A, rows, L, typename X::space>>>>{};
    }
  }
}
/// The tensor that remains of X when all its rows are summed: what a parameter of the last dim has as gradient.
template <class X>
consteval auto sum_of_rows() {
  return []<class... Rows>(list<Rows...>) {
    return type<typename reduce_of<X, Sum, Rows...>::is>{};
  }(without<back<dims_of<typename X::dims>>, dims_of<typename X::dims>>{});
}

template <class X, class Parameter, class Bias>
using layer_norm_of = typename decltype(layer_norm_verdict<operand<X>, operand<Parameter>, operand<Bias>>())::is;

/// The verdict on the gradients of a layer_norm of X: the gradient has to be placed like X.
template <class G, class X, class Parameter>
consteval auto layer_norm_backward_verdict() {
  using forward = layer_norm_of<X, Parameter, Parameter>;
  if constexpr (!is_accepted<forward>) {
    return type<forward>{};
  } else {
    return alike_verdict<G, X>();
  }
}
template <class G, class X, class Parameter>
using layer_norm_backward_of =
    typename decltype(layer_norm_backward_verdict<operand<G>, operand<X>, operand<Parameter>>())::is;

}  // namespace detail

/// Normalises the last dim to mean 0 and variance 1, then scales and shifts it: the dim must be whole.
///
/// x: [..., D], any layout that does not shard D and is no Partial; gain, bias: [D], replicated. epsilon: added to the
/// variance. Returns y like x, and mean and 1/sqrt(variance + epsilon) per row. Cost: two passes over each row while it
/// is in cache; allocates y and two numbers per row. Errors: refused for a sharded D, a Partial and integers.
/// Source: Ba, Kiros, Hinton, "Layer Normalization", arXiv 1607.06450.
template <AnyTensor X, AnyTensor Parameter>
  requires detail::is_accepted<detail::layer_norm_of<X, Parameter, Parameter>>
[[nodiscard]] auto layer_norm(const X& x, const Parameter& gain, const Parameter& bias, double epsilon = 1e-5) {
  using E = typename X::element;
  using A = accumulate_t<E>;
  using Result = typename detail::layer_norm_of<X, Parameter, Parameter>::is;
  using Statistics = decltype(Result::mean);
  detail::check_operands("layer_norm", x, gain);
  detail::check_operands("layer_norm", x, bias);
  const auto rows = detail::extents_from<typename Statistics::dims>(x);
  Result r{X(x.mesh(), x.extents(), detail::uninitialised{}), Statistics(x.mesh(), rows, detail::uninitialised{}),
           Statistics(x.mesh(), rows, detail::uninitialised{})};
  const std::size_t n = x.ranges().back().size;
  const E* in = x.local().data();
  const E* g = gain.local().data();
  const E* b = bias.local().data();
  E* out = detail::written(r.y);
  A* mean = detail::written(r.mean);
  A* scale = detail::written(r.scale);
  for (std::size_t row = 0; row < r.mean.local().size(); ++row, in += n, out += n) {
    const A count = static_cast<A>(n == 0 ? 1 : n);
    const A m = detail::lane_sum<A>(n, [&](std::size_t i) { return static_cast<A>(in[i]); }) / count;
    const A squares = detail::lane_sum<A>(n, [&](std::size_t i) {
      const A d = static_cast<A>(in[i]) - m;
      return d * d;
    });
    const A s = A(1) / math::sqrt(squares / count + static_cast<A>(epsilon));
    for (std::size_t i = 0; i < n; ++i) {
      out[i] = static_cast<E>((static_cast<A>(in[i]) - m) * s * static_cast<A>(g[i]) + static_cast<A>(b[i]));
    }
    mean[row] = m;
    scale[row] = s;
  }
  return r;
}
template <AnyTensor X, AnyTensor Parameter, AnyTensor Bias>
  requires(!detail::is_accepted<detail::layer_norm_of<X, Parameter, Bias>>)
[[nodiscard]] auto layer_norm(const X&, const Parameter&, const Bias&, double = 1e-5)
    -> detail::layer_norm_of<X, Parameter, Bias>;

/// The gradients of layer_norm, given the gradient at its result.
///
/// dy: placed like x; x, gain: as they were given; saved: what layer_norm returned. Returns dx like x, and the
/// gradients of gain and bias, which are Partial over every axis that shards the rows: each rank has seen its own rows
/// only. Cost: two passes over each row, three allocations. Errors: different extents.
template <AnyTensor X, AnyTensor Parameter, class Saved>
  requires detail::is_accepted<detail::layer_norm_of<X, Parameter, Parameter>>
[[nodiscard]] auto layer_norm_backward(const X& dy, const X& x, const Saved& saved, const Parameter& gain) {
  using E = typename X::element;
  using A = accumulate_t<E>;
  using G = typename decltype(detail::sum_of_rows<X>())::is;
  detail::check_operands("layer_norm_backward", dy, x);
  detail::check_operands("layer_norm_backward", x, gain);
  detail::check_operands("layer_norm_backward", x, saved.mean);
  detail::check_operands("layer_norm_backward", x, saved.scale);
  NormalizedBackward<X, G> r{X(x.mesh(), x.extents(), detail::uninitialised{}), G(x.mesh(), gain.extents()),
                             G(x.mesh(), gain.extents())};
  const std::size_t n = x.ranges().back().size;
  const E* grad = dy.local().data();
  const E* in = x.local().data();
  const E* g = gain.local().data();
  const A* mean = saved.mean.local().data();
  const A* scale = saved.scale.local().data();
  E* dx = detail::written(r.x);
  std::vector<A> sums(2 * n, A(0));
  for (std::size_t row = 0; row < saved.mean.local().size(); ++row, grad += n, in += n, dx += n) {
    const A m = mean[row], s = scale[row];
    for (std::size_t i = 0; i < n; ++i) {
      const A dg = static_cast<A>(grad[i]);
      sums[i] += dg * ((static_cast<A>(in[i]) - m) * s);
      sums[n + i] += dg;
    }
    const A count = static_cast<A>(n == 0 ? 1 : n);
    const A sum =
        detail::lane_sum<A>(n, [&](std::size_t i) { return static_cast<A>(grad[i]) * static_cast<A>(g[i]); }) / count;
    const A dot =
        detail::lane_sum<A>(n,
                            [&](std::size_t i) {
                              return static_cast<A>(grad[i]) * static_cast<A>(g[i]) * ((static_cast<A>(in[i]) - m) * s);
                            }) /
        count;
    for (std::size_t i = 0; i < n; ++i) {
      const A unit = (static_cast<A>(in[i]) - m) * s;
      dx[i] = static_cast<E>(s * (static_cast<A>(grad[i]) * static_cast<A>(g[i]) - sum - unit * dot));
    }
  }
  E* dgain = detail::written(r.gain);
  E* dbias = detail::written(r.bias);
  for (std::size_t i = 0; i < n; ++i) {
    dgain[i] = static_cast<E>(sums[i]);
    dbias[i] = static_cast<E>(sums[n + i]);
  }
  return r;
}
template <AnyTensor G, AnyTensor X, AnyTensor Parameter, class Saved>
  requires(!detail::is_accepted<detail::layer_norm_backward_of<G, X, Parameter>>)
[[nodiscard]] auto layer_norm_backward(const G& dy, const X& x, const Saved& saved, const Parameter& gain)
    -> detail::layer_norm_backward_of<G, X, Parameter>;

}  // namespace meshwise
