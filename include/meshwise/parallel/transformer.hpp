// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "meshwise/core/math.hpp"
#include "meshwise/layout/dual.hpp"
#include "meshwise/parallel/tensor.hpp"
#include "meshwise/tensor/activation.hpp"
#include "meshwise/tensor/dropout.hpp"
#include "meshwise/tensor/layer_norm.hpp"
#include "meshwise/tensor/rename.hpp"
#include "meshwise/tensor/softmax.hpp"

namespace meshwise {

/// The parameter itself, for the templates below that hold something for every parameter.
template <class T>
using Value = T;
/// The gradient of a parameter before any reduction: a sum is owed over every axis that replicates it.
template <class T>
using OwedGradient =
    std::optional<Tensor<typename T::element, typename T::dims, Owed<typename T::layout>, typename T::space>>;

/// What a pre-norm transformer block has for each parameter: `BlockOf<Value, ...>` the parameters themselves,
/// `BlockOf<OwedGradient, ...>` their gradients. Heads and ffn are split over tp; norms and row biases are replicated.
template <template <class> class Of, class E, class Grid>
struct BlockOf {
  template <class D, class... Ps>
  using P = Of<Tensor<E, D, Layout<Grid, Ps...>>>;
  using Vector = P<Dims<hidden>>;
  using Projection = P<Dims<hidden, heads, head_dim>, Shard<heads, tp>>;
  using ProjectionBias = P<Dims<heads, head_dim>, Shard<heads, tp>>;

  Vector norm1_gain, norm1_bias;
  Projection query_weight;
  ProjectionBias query_bias;
  Projection key_weight;
  ProjectionBias key_bias;
  Projection value_weight;
  ProjectionBias value_bias;
  P<Dims<heads, head_dim, hidden>, Shard<heads, tp>> output_weight;
  Vector output_bias;
  Vector norm2_gain, norm2_bias;
  P<Dims<hidden, ffn>, Shard<ffn, tp>> up_weight;
  P<Dims<ffn>, Shard<ffn, tp>> up_bias;
  P<Dims<ffn, hidden>, Shard<ffn, tp>> down_weight;
  Vector down_bias;
};

/// A pre-norm transformer block with tensor and sequence parallelism over tp and data parallelism over dp, forward and
/// backward. Between blocks activations are split by sequence; inside, by heads and ffn. Per step and rank it moves
/// 8 (t-1)/t b s h elements over tp: two all-gathers and two reduce-scatters forward, the same backward.
/// Source: Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", arXiv 2205.05198.
template <class E, class Grid>
struct TransformerBlock {
  using Parameters = BlockOf<Value, E, Grid>;
  using Gradients = BlockOf<OwedGradient, E, Grid>;
  template <class D, class... Ps>
  using Act = Tensor<E, D, Layout<Grid, Shard<batch, dp>, Ps...>>;
  using X = Act<Dims<batch, seq, hidden>, Shard<seq, tp>>;  // between blocks
  using Full = Act<Dims<batch, seq, hidden>>;               // gathered, inside a block
  using Heads = Act<Dims<batch, seq, heads, head_dim>, Shard<heads, tp>>;
  using KeyHeads = Act<Dims<batch, key<seq>, heads, head_dim>, Shard<heads, tp>>;
  using Scores = Act<Dims<batch, seq, heads, key<seq>>, Shard<heads, tp>>;
  using Inner = Act<Dims<batch, seq, ffn>, Shard<ffn, tp>>;
  using Norm = Normalized<X, Tensor<accumulate_t<E>, Dims<batch, seq>, typename X::layout>>;

  /// What the backward needs.
  struct Saved {
    X x;
    Norm norm1;
    Full a;
    Heads q;
    KeyHeads k, v;
    Scores p;
    Heads o;
    X y;
    Norm norm2;
    Full b;
    Inner h, u;
  };
  /// Dropout after attention and after the MLP: probability, and one seed for each.
  struct Drop {
    double p = 0;
    std::uint64_t attention_seed = 0, mlp_seed = 0;
  };

  static std::pair<X, Saved> forward(const Parameters& w, const X& x, const Drop& drop) {
    const auto norm1 = layer_norm(x, w.norm1_gain, w.norm1_bias);
    const Full a = convert<Replicate<tp>>(norm1.y);  // all-gather
    const auto q = column_linear<hidden>(a, w.query_weight, w.query_bias);
    const auto k = rename<seq, key<seq>>(column_linear<hidden>(a, w.key_weight, w.key_bias));
    const auto v = rename<seq, key<seq>>(column_linear<hidden>(a, w.value_weight, w.value_bias));
    const auto p = causal_softmax<seq>(contract<head_dim>(q, k), factor(w));
    const auto o = einsum<typename Heads::dims>(p, v);
    const auto attention =
        row_linear<Shard<seq, tp>, heads, head_dim>(o, w.output_weight, w.output_bias);  // reduce-scatter
    const X y = dropout(attention, drop.p, drop.attention_seed) + x;

    const auto norm2 = layer_norm(y, w.norm2_gain, w.norm2_bias);
    const Full b = convert<Replicate<tp>>(norm2.y);  // all-gather
    const auto h = column_linear<hidden>(b, w.up_weight, w.up_bias);
    const auto u = gelu(h);
    const auto mlp = row_linear<Shard<seq, tp>, ffn>(u, w.down_weight, w.down_bias);  // reduce-scatter
    return {dropout(mlp, drop.p, drop.mlp_seed) + y, Saved{x, norm1, a, q, k, v, p, o, y, norm2, b, h, u}};
  }

  static std::pair<X, Gradients> backward(const Parameters& w, const Saved& s, const X& dout, const Drop& drop) {
    const auto down = row_linear_backward(dropout(dout, drop.p, drop.mlp_seed), s.u, w.down_weight);  // all-gather
    const auto up = column_linear_backward(gelu_backward(down.x, s.h), s.b, w.up_weight);
    const auto norm2 = layer_norm_backward(backward_to<X>(up.x), s.y, s.norm2, w.norm2_gain);  // reduce-scatter
    const X dy = norm2.x + dout;

    const auto output =
        row_linear_backward(dropout(dy, drop.p, drop.attention_seed), s.o, w.output_weight);  // all-gather
    const auto ds = softmax_backward<key<seq>>(einsum<typename Scores::dims>(output.x, s.v), s.p, factor(w));
    const auto query = column_linear_backward(einsum<typename Heads::dims>(ds, s.k), s.a, w.query_weight);
    const auto dk = einsum<typename KeyHeads::dims>(ds, s.q);
    const auto keys = column_linear_backward(rename<key<seq>, seq>(dk), s.a, w.key_weight);
    const auto dv = einsum<typename KeyHeads::dims>(s.p, output.x);
    const auto value = column_linear_backward(rename<key<seq>, seq>(dv), s.a, w.value_weight);
    const auto da = backward_to<X>(query.x + keys.x + value.x);  // reduce-scatter
    const auto norm1 = layer_norm_backward(da, s.x, s.norm1, w.norm1_gain);
    return {norm1.x + dy, Gradients{norm1.gain, norm1.bias, query.weight, query.bias, keys.weight, keys.bias,
                                    value.weight, value.bias, output.weight, output.bias, norm2.gain, norm2.bias,
                                    up.weight, up.bias, down.weight, down.bias}};
  }

 private:
  static double factor(const Parameters& w) {
    return 1.0 / math::sqrt(static_cast<double>(w.query_weight.template extent<head_dim>()));
  }
};

}  // namespace meshwise
