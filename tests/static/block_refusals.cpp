// SPDX-License-Identifier: Apache-2.0
// What the layers of a transformer block refuse, as facts about types.
#include "meshwise/parallel/fused_projection.hpp"
#include "meshwise/parallel/gated_mlp.hpp"
#include "meshwise/parallel/tensor.hpp"

namespace {

using namespace meshwise;

using Grid = Mesh<dp, tp>;
template <class D, class... Ps>
using On = Tensor<float, D, Layout<Grid, Ps...>>;

template <class To, class G, class X, class W>
concept can_go_back = requires(const G& dy, const X& x, const W& w) {
  column_linear_backward<To>(dy, x, w);
};
using X = On<Dims<batch, seq, hidden>, Shard<batch, dp>>;
using Y = On<Dims<batch, seq, ffn>, Shard<batch, dp>, Shard<ffn, tp>>;
using W = On<Dims<hidden, ffn>, Shard<ffn, tp>>;
static_assert(can_go_back<Shard<seq, tp>, Y, X, W> && can_go_back<Replicate<tp>, Y, X, W>);
static_assert(can_go_back<Shard<seq, Zigzag<tp>>, Y, X, W>, "performed at once, because it cannot be started");
static_assert(!can_go_back<Shard<heads, tp>, Y, X, W>, "the input has no heads");
static_assert(!can_go_back<Shard<seq, cp>, Y, X, W>, "the mesh has no cp");
static_assert(!can_go_back<Shard<seq, tp>, Y, X, On<Dims<hidden, ffn>>>, "a gradient split otherwise than the weight");

template <class H>
concept can_gate = requires(const H& h) {
  swiglu(h);
};
static_assert(can_gate<On<Dims<batch, gate_and_up, ffn>, Shard<ffn, tp>>> && can_gate<On<Dims<gate_and_up>>>);
static_assert(!can_gate<On<Dims<batch, gate_and_up, ffn>, Shard<gate_and_up, tp>>> && !can_gate<On<Dims<batch, ffn>>>);
static_assert(!can_gate<Tensor<int, Dims<gate_and_up, ffn>, Layout<Grid>>>);

template <class Q, class K>
concept can_fuse = requires(const Q& q, const K& k) {
  fuse_projections(q, k, k, 3);
};
template <class F>
concept can_split = requires(const F& f) {
  split_projections(f);
};
using Heads = On<Dims<hidden, heads, head_dim>, Shard<heads, tp>>;
using Keys = On<Dims<hidden, kv, head_dim>, Shard<kv, tp>>;
static_assert(can_fuse<Heads, Keys> && !can_fuse<Heads, Heads> && !can_fuse<Keys, Keys>);
static_assert(!can_fuse<Heads, On<Keys::dims>> && !can_fuse<Heads, On<Dims<kv, head_dim>, Shard<kv, tp>>>);
static_assert(can_split<On<Dims<hidden, kv, query_key_value, head_dim>, Shard<kv, tp>>>);
static_assert(can_split<On<Dims<kv, query_key_value, head_dim>, Shard<kv, tp>>>);
static_assert(!can_split<Keys> && !can_split<On<Dims<query_key_value, kv, head_dim>>>);
static_assert(!can_split<On<Dims<kv, query_key_value, head_dim>, Shard<query_key_value, tp>>>);

}  // namespace
