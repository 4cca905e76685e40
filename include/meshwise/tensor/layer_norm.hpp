// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "meshwise/core/detail/pack_loops.hpp"
#include "meshwise/core/math.hpp"
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
  const std::size_t rows_here = r.mean.local().size();
  const A count = static_cast<A>(n == 0 ? 1 : n);
  detail::in_packs([&](auto width) {
    using P = typename decltype(width)::template pack<A>;
    for (std::size_t row = 0; row < rows_here; ++row, in += n, out += n) {
      mean[row] = detail::sum_packs<A>(width, n, detail::Itself{}, in) / count;
      const P m = mean[row];
      const A squares = detail::sum_packs<A>(
          width, n, [&](const P& v) { return (v - m) * (v - m); }, in);
      scale[row] = A(1) / math::sqrt(squares / count + static_cast<A>(epsilon));
      const P s = scale[row];
      detail::map_packs(
          width, out, n, [&](const P& v, const P& w, const P& shift) { return (v - m) * s * w + shift; }, in, g, b);
    }
  });
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
  const std::size_t rows = saved.mean.local().size();
  const A count = static_cast<A>(n == 0 ? 1 : n);
  detail::in_packs([&](auto width) {
    using P = typename decltype(width)::template pack<A>;
    A* const gains = sums.data();
    A* const biases = gains + n;
    for (std::size_t row = 0; row < rows; ++row, grad += n, in += n, dx += n) {
      const P m = mean[row], s = scale[row];
      const auto unit = [&](const P& v) { return (v - m) * s; };
      detail::map_packs(
          width, gains, n, [&](const P& so_far, const P& d, const P& v) { return so_far + d * unit(v); }, gains, grad,
          in);
      detail::map_packs(
          width, biases, n, [](const P& so_far, const P& d) { return so_far + d; }, biases, grad);
      const P sum = detail::sum_packs<A>(
                        width, n, [](const P& d, const P& w) { return d * w; }, grad, g) /
                    count;
      const P dot = detail::sum_packs<A>(
                        width, n, [&](const P& d, const P& w, const P& v) { return d * w * unit(v); }, grad, g, in) /
                    count;
      detail::map_packs(
          width, dx, n, [&](const P& d, const P& w, const P& v) { return s * (d * w - sum - unit(v) * dot); }, grad, g,
          in);
    }
  });
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
