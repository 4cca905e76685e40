// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "meshwise/core/math.hpp"
#include "meshwise/parallel/attention_core.hpp"
#include "meshwise/parallel/projection.hpp"
#include "meshwise/tensor/activation.hpp"
#include "meshwise/tensor/layer_norm.hpp"

namespace meshwise {

/// The middle of an MLP with one GELU. An mlp of a block (BlockShape::mlp) says which dims its first weight has.
struct GeluMlp {
  using weight_dims = Dims<hidden, ffn>;
  using bias_dims = Dims<ffn>;

  template <class H>
  static auto forward(const H& h) {
    return gelu(h);
  }
  template <class G, class H>
  static auto backward(G&& du, const H& h) {
    return gelu_backward(std::forward<G>(du), h);
  }
};

namespace detail {

/// What the backward of a norm needs, whose type does not depend on the form of the block: then its code does not.
template <class Statistics>
struct RowStatistics {
  Statistics mean, scale;
};

}  // namespace detail

/// A pre-norm transformer block with tensor, sequence and data parallelism, forward and backward.
///
/// Form: which of the variants, see BlockForm and BlockShape. As it is, activations between blocks are split by
/// sequence over tp, inside by heads and ffn. Per step and rank a block moves 8 (t-1)/t b s h elements over the tensor
/// axes: two all-gathers and two reduce-scatters forward, the same backward, or four all-reduces without sequence
/// parallelism. In the backward both reductions of input gradients are in flight while the weight gradients of their
/// layers are computed, as are the gathers of `Gathered::again` with the products before.
/// Recompute::full adds two gathers and one reduction, of the forward without its last product.
/// Saved, in bytes per element of two, with multi-head attention, ffn 4h and dropout everywhere, without the row
/// statistics of the norms: sbh (34 + 5as/h) on one rank if masks are kept, sbh (32 + 2as/h) if they are replayed;
/// (sbh/t) of that with sequence parallelism and Gathered::again, sbh (10 + 24/t + 5as/(ht)) and sbh (8 + 24/t +
/// 2as/(ht)) without; Recompute::selective drops the term of s^2; Recompute::full saves 2 sbh, or (sbh/t) 2.
/// Source: Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", arXiv 2205.05198.
template <class E, class Grid, class Form = BlockForm>
struct TransformerBlock {
 private:
  using Shape = typename Form::shape;
  using Projection = typename Shape::projection;
  using Mlp = typename Shape::mlp;
  using Data = detail::sharded_over<batch, typename Form::data>;
  using Sequence = detail::entries_in<typename Form::sequence>;
  using TensorAxes = detail::entries_in<typename Shape::tensor>;
  using Between = std::conditional_t<Form::sequence_parallel, detail::join<Sequence, TensorAxes>, Sequence>;
  using Conversions = detail::TensorConversions<typename Shape::tensor, Form::sequence_parallel>;
  static constexpr bool gathers_again =
      Form::sequence_parallel && Form::gathered == Gathered::again && Form::recompute != Recompute::full;

 public:
  /// The gradient of a norm weight or row bias: a sum is owed over the axes whose ranks have seen other rows.
  template <class T>
  using VectorGradient =
      std::optional<Tensor<E, typename T::dims,
                           typename decltype(detail::canonical_from<Grid>(detail::partials_over(
                               detail::axes_of<detail::shard_over<
                                   batch, detail::join<detail::entries_in<typename Form::data>, Between>>>{})))::is>>;
  using Parameters = typename Projection::template BlockOf<Value, E, Grid, Shape>;
  using Gradients =
      std::conditional_t<Form::sequence_parallel, typename Projection::template BlockOf<OwedGradient, E, Grid, Shape>,
                         typename Projection::template BlockOf<OwedGradient, E, Grid, Shape, VectorGradient>>;

  /// An activation inside a block, further placements of its dims beside those of batch and sequence.
  template <class D, class... Ps>
  using Act = detail::placed_by<E, D, Grid, Data, detail::shard_list<seq, Sequence>, detail::list<Ps...>>;
  using X = detail::placed_by<E, Dims<batch, seq, hidden>, Grid, Data, detail::shard_list<seq, Between>>;
  using Full = Act<Dims<batch, seq, hidden>>;  // gathered, inside a block
  using Statistics = Tensor<accumulate_t<E>, Dims<batch, seq>, typename X::layout>;
  using Norm = Normalized<X, Statistics>;

  /// Dropout of one block and step: after attention and after the MLP with probability p, of the attention's
  /// probabilities with `scores.p`; a seed for each.
  struct Drop {
    double p = 0;
    std::uint64_t attention_seed = 0, mlp_seed = 0;
    ScoreDrop scores{};
  };

 private:
  using Heads = decltype(Projection::forward(std::declval<const Full&>(), std::declval<const Parameters&>()));
  using Q = decltype(Heads::q);
  using K = decltype(Heads::k);
  using Core = typename Form::attention::template Core<Q, K, Form::recompute, Form::masks>;
  using Hidden =
      decltype(column_linear<hidden>(std::declval<const Full&>(), std::declval<const Parameters&>().up_weight,
                                     std::declval<const Parameters&>().up_bias));
  using Inner = decltype(Mlp::forward(std::declval<const Hidden&>()));
  using Input = std::conditional_t<gathers_again, X, Full>;
  using Choice = detail::SavedDropout<X, Form::masks>;

  using Rows = detail::RowStatistics<Statistics>;
  struct All {
    X x;
    Rows norm1;
    Input a;
    Q q;
    K k, v;
    typename Core::Saved core;
    Q o;
    Choice attention_drop;
    X y;
    Rows norm2;
    Input b;
    Hidden h;
    Inner u;
    Choice mlp_drop;
  };
  struct InputAlone {
    X x;
  };

 public:
  /// What the backward needs.
  using Saved = std::conditional_t<Form::recompute == Recompute::full, InputAlone, All>;

  /// The result for x [batch, seq, hidden], and what the backward needs. drop: the same for both. Ordering: collective
  /// along the tensor axes, and along those that the attention communicates over. Errors: those of the layers.
  static std::pair<X, Saved> forward(const Parameters& w, const X& x, const Drop& drop) {
    All s = save(w, x, drop);
    auto mlp = Conversions::reduced(contract<ffn>(s.u, w.down_weight)) + w.down_bias;  // reduce-scatter
    X out = s.mlp_drop(std::move(mlp)) + s.y;
    if constexpr (Form::recompute == Recompute::full) {
      return {std::move(out), InputAlone{x}};
    } else {
      return {std::move(out), std::move(s)};
    }
  }

  /// The gradients at x and at the parameters, given that at the result. w, s, drop: of the forward. Ordering: as it.
  /// The gradients of parameters owe the sums that their types say.
  static std::pair<X, Gradients> backward(const Parameters& w, const Saved& s, const X& dout, const Drop& drop) {
    if constexpr (Form::recompute == Recompute::full) {
      return reverse(w, save(w, s.x, drop), dout, drop);
    } else {
      return reverse(w, s, dout, drop);
    }
  }

 private:
  /// The forward but for the last product and its sum.
  static All save(const Parameters& w, const X& x, const Drop& drop) {
    auto norm1 = layer_norm(x, w.norm1_gain, w.norm1_bias);
    const Full a = Conversions::gathered(norm1.y);  // all-gather
    auto [q, k, v] = Projection::forward(a, w);
    auto [o, core] = Core::forward(q, k, v, factor(q), drop.scores);
    Choice attention_drop(x, drop.p, drop.attention_seed);
    auto attention =
        Conversions::reduced(contract<heads, head_dim>(o, w.output_weight)) + w.output_bias;  // reduce-scatter
    X y = attention_drop(std::move(attention)) + x;

    auto norm2 = layer_norm(y, w.norm2_gain, w.norm2_bias);
    const Full b = Conversions::gathered(norm2.y);  // all-gather
    auto h = column_linear<hidden>(b, w.up_weight, w.up_bias);
    auto u = Mlp::forward(h);
    Choice mlp_drop(x, drop.p, drop.mlp_seed);
    return All{x,
               {std::move(norm1.mean), std::move(norm1.scale)},
               input(norm1.y, a),
               std::move(q),
               std::move(k),
               std::move(v),
               std::move(core),
               std::move(o),
               std::move(attention_drop),
               std::move(y),
               {std::move(norm2.mean), std::move(norm2.scale)},
               input(norm2.y, b),
               std::move(h),
               std::move(u),
               std::move(mlp_drop)};
  }

  static std::pair<X, Gradients> reverse(const Parameters& w, const All& s, const X& dout, const Drop& drop) {
    Gradients g;
    const X dmlp = s.mlp_drop(dout);
    const Full dz = Conversions::gathered(dmlp);  // all-gather
    auto b = again(s.b);
    auto down = detail::linear_gradients(dz, dmlp, s.u, w.down_weight);
    g.down_weight = std::move(down.weight), g.down_bias = std::move(down.bias);
    const auto dh = Mlp::backward(std::move(down.x), s.h);
    auto db = Conversions::start_reduced(einsum<typename Full::dims>(dh, w.up_weight));  // reduce-scatter
    g.up_weight = einsum<typename decltype(w.up_weight)::dims>(b.wait(), dh);
    g.up_bias = detail::bias_gradient<Full, decltype(w.up_weight)>(dh);
    auto norm2 = layer_norm_backward(X(db.wait()), s.y, s.norm2, w.norm2_gain);
    g.norm2_gain = std::move(norm2.gain), g.norm2_bias = std::move(norm2.bias);
    const X dy = std::move(norm2.x) + dout;

    const X dattention = s.attention_drop(dy);
    const Full dp = Conversions::gathered(dattention);  // all-gather
    auto a = again(s.a);
    auto output = detail::linear_gradients(dp, dattention, s.o, w.output_weight);
    g.output_weight = std::move(output.weight), g.output_bias = std::move(output.bias);
    const auto dheads =
        Projection::joined(Core::backward(output.x, s.q, s.k, s.v, s.core, factor(s.q), drop.scores), w);
    auto da = Conversions::start_reduced(Projection::template input_gradient<typename Full::dims>(dheads, w));
    Projection::parameter_gradients(dheads, Full(a.wait()), w, g);
    auto norm1 = layer_norm_backward(X(da.wait()), s.x, s.norm1, w.norm1_gain);  // reduce-scatter
    g.norm1_gain = std::move(norm1.gain), g.norm1_bias = std::move(norm1.bias);
    return {std::move(norm1.x) + dy, std::move(g)};
  }

  static double factor(const Q& q) { return 1.0 / math::sqrt(static_cast<double>(q.template extent<head_dim>())); }
  static Input input(const X& shard, const Full& full) {
    if constexpr (gathers_again) {
      return shard;
    } else {
      return full;
    }
  }
  static auto again(const Input& x) {
    if constexpr (gathers_again) {
      return Conversions::start_gathered(x);
    } else {
      return detail::Converted<Full>{x};
    }
  }
};

}  // namespace meshwise
