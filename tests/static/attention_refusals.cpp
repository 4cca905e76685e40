// SPDX-License-Identifier: Apache-2.0
// Refusals of attention, local, round a ring and by heads: each one beside its remedy.
#include "meshwise/parallel/context.hpp"
#include "meshwise/parallel/ulysses.hpp"
#include "meshwise/tensor/position_ids.hpp"

namespace {

using namespace meshwise;

using Grid = Mesh<dp, tp>;
template <class D, class... Ps>
using On = Tensor<float, D, Layout<Grid, Ps...>>;
template <class... Ps>
using Queries = On<Dims<seq, heads, head_dim>, Ps...>;
template <class... Ps>
using Keys = On<Dims<key<seq>, kv, head_dim>, Ps...>;

template <class Q, class K, class V = K>
concept attends = requires(const Q& q, const K& k, const V& v) {
  attend(q, k, v, CausalMask{}, 1.0);
};
template <class A, class Q, class K, class V = K>
concept rings = requires(const Q& q, const K& k, const V& v) {
  ring_attention<A>(q, k, v, CausalMask{}, 1.0);
};
template <class G, class A, class Q, class K, class Out = Q>
concept rings_back = requires(const G& dout, const Q& q, const K& k, const Attended<Out, detail::rows_of<Out>>& saved) {
  ring_attention_backward<A>(dout, q, k, k, saved, CausalMask{}, 1.0);
};
template <class A, class Q, class K, class V = K>
concept exchanges = requires(const Q& q, const K& k, const V& v) {
  ulysses_attention<A>(q, k, v, CausalMask{}, 1.0);
};
template <class A, class To, class Q, class K>
concept exchanges_to = requires(const Q& q, const K& k) {
  ulysses_attention<A, To>(q, k, k, CausalMask{}, 1.0);
};

using Cut = Queries<Shard<seq, tp>>;
using Folded = Queries<Shard<seq, Zigzag<tp>>>;
using CutKeys = Keys<Shard<key<seq>, tp>>;
using FoldedKeys = Keys<Shard<key<seq>, Zigzag<tp>>>;

static_assert(!attends<Queries<>, On<Dims<seq, kv, head_dim>>> && attends<Queries<>, Keys<>>);
static_assert(!attends<Cut, CutKeys> && attends<Cut, Keys<>> && rings<tp, Cut, CutKeys>);

static_assert(!rings<tp, Folded, CutKeys> && !rings<tp, Cut, FoldedKeys> && rings<tp, Folded, FoldedKeys>);
static_assert(!rings<dp, Queries<Shard<seq, dp>>, CutKeys> && !rings<tp, Queries<Shard<seq, dp>>, CutKeys>);
static_assert(rings<dp, Queries<Shard<seq, dp>>, Keys<Shard<key<seq>, dp>>>);
static_assert(!rings<tp, Folded, FoldedKeys, Keys<>> && !rings<tp, Folded, FoldedKeys, CutKeys>);
static_assert(!rings<tp, Queries<Shard<heads, tp>>, Keys<Shard<kv, tp>>>, "an axis that cuts the heads");
static_assert(attends<Queries<Shard<heads, tp>>, Keys<Shard<kv, tp>>>);
static_assert(!rings<tp, Queries<>, Keys<>> && !rings<cp, Cut, CutKeys>);
static_assert(!rings<dp, Queries<Shard<seq, dp, tp>>, Keys<Shard<key<seq>, dp, tp>>>,
              "an axis that shares the sequence");
static_assert(!rings<tp, Queries<Shard<seq, tp>, Shard<heads, dp>>, Keys<Shard<key<seq>, tp>, Shard<head_dim, dp>>>);
static_assert(rings<tp, Queries<Shard<seq, tp>, Shard<heads, dp>>, CutKeys>, "keys that all heads have");
static_assert(!rings_back<Queries<>, tp, Folded, FoldedKeys> && rings_back<Folded, tp, Folded, FoldedKeys>);
static_assert(!rings_back<Folded, tp, Folded, FoldedKeys, Cut>, "saved from another attention");

static_assert(exchanges<tp, Cut, CutKeys> && exchanges<tp, Folded, CutKeys>, "each is gathered in order");
static_assert(!exchanges<tp, Queries<>, CutKeys> && !exchanges<tp, Cut, Keys<>> && !exchanges<cp, Cut, CutKeys>);
static_assert(!exchanges<dp, Queries<Shard<seq, dp, tp>>, Keys<Shard<key<seq>, dp, tp>>>);
static_assert(exchanges<dp, Queries<Shard<seq, dp>, Shard<heads, tp>>, Keys<Shard<key<seq>, dp>, Shard<kv, tp>>>);
static_assert(exchanges_to<tp, Replicate<tp>, Cut, CutKeys> && !exchanges_to<tp, Shard<head_dim, tp>, Cut, CutKeys>);
static_assert(!exchanges_to<dp, Shard<kv, dp>, Queries<Shard<seq, dp>, Shard<heads, tp>>, Keys<Shard<key<seq>, dp>>>,
              "keys cut by the minor axis of the heads");

template <class T>
concept has_ids = requires(const T& x) {
  position_ids<seq>(x);
};
static_assert(has_ids<Folded> && !has_ids<FoldedKeys>);

}  // namespace
