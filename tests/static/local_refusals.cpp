// SPDX-License-Identifier: Apache-2.0
// Refusals of selections, means, norms, accumulation, wrapped lambdas and shared heads: each one beside its remedy.
#include "meshwise/tensor/accumulate.hpp"
#include "meshwise/tensor/arg_max.hpp"
#include "meshwise/tensor/attention.hpp"
#include "meshwise/tensor/backward.hpp"
#include "meshwise/tensor/mean.hpp"
#include "meshwise/tensor/norm.hpp"
#include "meshwise/tensor/top_k.hpp"

namespace meshwise {
namespace {

using Grid = Mesh<dp, tp>;
template <class D, class... Ps>
using On = Tensor<float, D, Layout<Grid, Ps...>>;
using Rows = Dims<batch, hidden>;

template <class T>
concept can_arg_max = requires(const T& x) {
  arg_max<hidden>(x);
};
template <class T>
concept can_distribute_arg_max = requires(const T& x) {
  distributed_arg_max<hidden>(x);
};
template <class T>
concept can_top_k = requires(const T& x) {
  top_k<hidden>(x, 5);
};
template <class T>
concept can_distribute_top_k = requires(const T& x) {
  distributed_top_k<hidden>(x, 5);
};
static_assert(!can_arg_max<On<Rows, Shard<hidden, tp>>> && can_distribute_arg_max<On<Rows, Shard<hidden, tp>>>);
static_assert(!can_top_k<On<Rows, Shard<hidden, tp>>> && can_distribute_top_k<On<Rows, Shard<hidden, tp>>>);
static_assert(!can_arg_max<On<Rows, Partial<tp>>> && !can_distribute_arg_max<On<Rows, Partial<tp>>>);
static_assert(!can_top_k<On<Rows, Partial<tp>>> && !can_distribute_top_k<On<Rows, Partial<tp>>>);
static_assert(can_arg_max<On<Rows, Shard<batch, tp>>> && can_top_k<On<Rows, Shard<batch, tp>>>);
static_assert(!can_arg_max<On<Dims<batch>>> && !can_top_k<On<Dims<batch>>>);

template <class T>
concept can_norm = requires(const T& x) {
  norm(x);
};
template <class T, class... Ds>
concept can_mean = requires(const T& x) {
  mean<Ds...>(x);
};
static_assert(!can_norm<On<Rows, Partial<tp>>> && can_norm<On<Rows, Shard<batch, tp>>>);
static_assert(!can_mean<On<Rows, Partial<tp, Max>>, batch> && can_mean<On<Rows, Partial<tp>>, batch>);
static_assert(!can_mean<Tensor<int, Rows, Layout<Grid>>, batch> && can_mean<On<Rows>, batch>);
static_assert(!can_mean<On<Rows>, batch, batch> && !can_mean<On<Rows>, seq>);

template <class A, class B>
concept can_accumulate = requires(A& a, const B& b) {
  a += b;
};
static_assert(!can_accumulate<On<Rows, Partial<tp>>, On<Rows>> && can_accumulate<On<Rows>, On<Rows>>);
static_assert(!can_accumulate<On<Rows>, On<Rows, Partial<tp>>>);
static_assert(can_accumulate<On<Rows, Partial<tp>>, On<Rows, Partial<tp>>>);
static_assert(!can_accumulate<On<Rows, Partial<tp, Max>>, On<Rows, Partial<tp, Max>>>);
static_assert(!can_accumulate<On<Rows, Shard<batch, Zigzag<tp>>>, On<Rows, Shard<batch, tp>>>);

struct Mix {
  float operator()(float a, float b) const { return a - 2 * b; }
};
template <class F, class A, class B>
concept can_zip = requires(const F& f, const A& a, const B& b) {
  zip(f, a, b);
};
static_assert(!can_zip<Mix, On<Rows, Partial<tp>>, On<Rows, Partial<tp>>>);
static_assert(can_zip<Linear<Mix>, On<Rows, Partial<tp>>, On<Rows, Partial<tp>>>);
static_assert(!can_zip<Linear<Mix>, On<Rows, Partial<tp>>, On<Rows>>);
static_assert(!can_zip<LinearInFirst<Mix>, On<Rows>, On<Rows, Partial<tp>>>);
static_assert(can_zip<LinearInFirst<Mix>, On<Rows, Partial<tp>>, On<Rows>>);

template <class... Ps>
using Queries = On<Dims<seq, heads, head_dim>, Ps...>;
template <class T>
concept can_seed = requires(const T& x) {
  gradient_seed(x);
};
static_assert(!can_seed<On<Dims<>, Partial<tp, Max>>>);
static_assert(can_seed<On<Dims<>, Partial<tp>>> && can_seed<On<Dims<>>>);

template <class... Ps>
using Keys = On<Dims<key<seq>, kv, head_dim>, Ps...>;
template <class Q, class K>
concept can_score = requires(const Q& q, const K& k) {
  shared_einsum<Dims<heads, seq, key<seq>>, heads, kv>(q, k);
};
static_assert(!can_score<Queries<Shard<heads, tp>>, Keys<Shard<kv, dp>>> && !can_score<Queries<>, Keys<Shard<kv, tp>>>);
static_assert(can_score<Queries<Shard<heads, tp>>, Keys<Shard<kv, tp>>>);
static_assert(can_score<Queries<Shard<heads, dp, tp>>, Keys<Shard<kv, dp>>>);

}  // namespace
}  // namespace meshwise
