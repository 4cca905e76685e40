// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>

#include "meshwise/parallel/block_form.hpp"
#include "meshwise/tensor/rename.hpp"

namespace meshwise {

/// The parameter itself, for the templates below that hold something for every parameter.
template <class T>
using Value = T;
/// The gradient of a parameter before any reduction: a sum is owed over every axis that replicates it.
template <class T>
using OwedGradient =
    std::optional<Tensor<typename T::element, typename T::dims, Owed<typename T::layout>, typename T::space>>;

namespace detail {

/// The dim of the heads of keys, and the axes that split it.
template <class Keys, class Axes>
struct key_heads;
template <class Axes>
struct key_heads<EachHead, Axes> {
  using dim = heads;
  using axes = Axes;
};
template <class KeyAxes, class Axes>
struct key_heads<SharedHeads<KeyAxes>, Axes> {
  using dim = kv;
  using axes = KeyAxes;
};
template <class Shape>
using key_heads_of = key_heads<typename Shape::keys, typename Shape::tensor>;

}  // namespace detail

/// What a pre-norm transformer block has for each parameter beside its projection of queries, keys and values. Heads
/// and ffn are split over the tensor axes; norms and row biases are replicated (OfVector: what there is for these,
/// where that differs).
template <template <class> class Of, class E, class Grid, class TensorAxes, class Mlp,
          template <class> class OfVector = Of>
struct BlockFrame {
  template <class D, class... Lists>
  using P = Of<detail::placed_by<E, D, Grid, Lists...>>;
  using by_heads = detail::sharded_over<heads, TensorAxes>;
  using by_ffn = detail::sharded_over<ffn, TensorAxes>;
  using Vector = OfVector<detail::placed_by<E, Dims<hidden>, Grid>>;

  Vector norm1_gain, norm1_bias;
  P<Dims<heads, head_dim, hidden>, by_heads> output_weight;
  Vector output_bias;
  Vector norm2_gain, norm2_bias;
  P<typename Mlp::weight_dims, by_ffn> up_weight;
  P<typename Mlp::bias_dims, by_ffn> up_bias;
  P<Dims<ffn, hidden>, by_ffn> down_weight;
  Vector down_bias;
};
template <template <class> class Of, class E, class Grid, class Shape, template <class> class OfVector>
using BlockFrameOf = BlockFrame<Of, E, Grid, typename Shape::tensor, typename Shape::mlp, OfVector>;

/// A block with three projections: `BlockOf<Value, ...>` are its parameters, `BlockOf<OwedGradient, ...>` their
/// gradients.
template <template <class> class Of, class E, class Grid, class Shape = BlockShape,
          template <class> class OfVector = Of>
struct BlockOf : BlockFrameOf<Of, E, Grid, Shape, OfVector> {
  template <class D, class... Lists>
  using P = Of<detail::placed_by<E, D, Grid, Lists...>>;
  using keys = typename detail::key_heads_of<Shape>::dim;
  using by_heads = detail::sharded_over<heads, typename Shape::tensor>;
  using by_keys = detail::sharded_over<keys, typename detail::key_heads_of<Shape>::axes>;

  P<Dims<hidden, heads, head_dim>, by_heads> query_weight;
  P<Dims<heads, head_dim>, by_heads> query_bias;
  P<Dims<hidden, keys, head_dim>, by_keys> key_weight;
  P<Dims<keys, head_dim>, by_keys> key_bias;
  P<Dims<hidden, keys, head_dim>, by_keys> value_weight;
  P<Dims<keys, head_dim>, by_keys> value_bias;
};

/// Queries, keys and values by a layer each.
///
/// A projection of a block (BlockShape::projection) says which parameters there are, `BlockOf`, and makes of the input
/// of all three `forward(x, w)`: the heads .q, .k and .v; of their gradients `joined(g, w)`, which the other two take:
/// `input_gradient<Dims>(joined, w)`, the owed sum for the input, and `parameter_gradients(joined, x, w, gradients)`.
struct SeparateProjections {
  template <template <class> class Of, class E, class Grid, class Shape, template <class> class OfVector = Of>
  using BlockOf = meshwise::BlockOf<Of, E, Grid, Shape, OfVector>;

  template <class X, class W>
  static auto forward(const X& x, const W& w) {
    auto q = column_linear<hidden>(x, w.query_weight, w.query_bias);
    auto k = rename<seq, key<seq>>(column_linear<hidden>(x, w.key_weight, w.key_bias));
    auto v = rename<seq, key<seq>>(column_linear<hidden>(x, w.value_weight, w.value_bias));
    return detail::QueryKeyValue<decltype(q), decltype(k), decltype(v)>{std::move(q), std::move(k), std::move(v)};
  }
  template <class G, class W>
  static auto joined(G&& g, const W&) {
    auto k = rename<key<seq>, seq>(g.k), v = rename<key<seq>, seq>(g.v);
    return detail::QueryKeyValue<decltype(g.q), decltype(k), decltype(v)>{std::move(g.q), std::move(k), std::move(v)};
  }
  template <class D, class G, class W>
  static auto input_gradient(const G& g, const W& w) {
    return einsum<D>(g.q, w.query_weight) + einsum<D>(g.k, w.key_weight) + einsum<D>(g.v, w.value_weight);
  }
  template <class G, class X, class W, class Gradients>
  static void parameter_gradients(const G& g, const X& x, const W& w, Gradients& to) {
    const auto one = [&x](const auto& dy, const auto& weight, auto& dw, auto& db) {
      using Weight = std::remove_cvref_t<decltype(weight)>;
      dw = einsum<typename Weight::dims>(x, dy);
      db = detail::bias_gradient<X, Weight>(dy);
    };
    one(g.q, w.query_weight, to.query_weight, to.query_bias);
    one(g.k, w.key_weight, to.key_weight, to.key_bias);
    one(g.v, w.value_weight, to.value_weight, to.value_bias);
  }
};

}  // namespace meshwise
