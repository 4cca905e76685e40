// SPDX-License-Identifier: Apache-2.0
// A refusal is visible to `requires`: each one beside its remedy. What the compiler says is in tests/compile_fail.
#include <string>
#include <type_traits>
#include <vector>

#include "meshwise/parallel/data.hpp"
#include "meshwise/parallel/tensor.hpp"
#include "meshwise/parallel/vocabulary.hpp"
#include "meshwise/tensor/accumulate.hpp"
#include "meshwise/tensor/activation.hpp"
#include "meshwise/tensor/assume.hpp"
#include "meshwise/tensor/dropout.hpp"
#include "meshwise/tensor/generate.hpp"
#include "meshwise/tensor/inside.hpp"
#include "meshwise/tensor/layer_norm.hpp"
#include "meshwise/tensor/named.hpp"
#include "meshwise/tensor/rename.hpp"
#include "meshwise/tensor/softmax.hpp"
#include "meshwise/train/adamw.hpp"
#include "meshwise/train/global_norm.hpp"

namespace meshwise {
namespace {

using Grid = Mesh<dp, tp>;
template <class D, class... Ps>
using On = Tensor<float, D, Layout<Grid, Ps...>>;
using Rows = Dims<batch, hidden>;
using Weight = Dims<hidden, ffn>;
using Vector = Dims<hidden>;
using Ids = Tensor<int, Dims<batch>, Layout<Grid>>;

// The missing conversion.
static_assert(!std::is_convertible_v<On<Rows, Partial<tp>>, On<Rows>>);
static_assert(!std::is_constructible_v<On<Rows, Shard<batch, tp>>, On<Rows>>);
static_assert(!std::is_assignable_v<On<Rows>&, On<Rows, Partial<tp>>>);
static_assert(std::is_convertible_v<On<Rows, Partial<tp>>, On<Rows, Partial<tp>>>);
static_assert(std::is_convertible_v<On<Rows, Replicate<dp>, Shard<batch, tp>>, On<Rows, Shard<batch, tp>>>);

// Functions of one tensor.
template <class T>
concept can_gelu = requires(const T& x) {
  gelu(x);
};
template <class T>
concept can_softmax = requires(const T& x) {
  softmax<hidden>(x);
};
template <class T, class P = On<Vector>>
concept can_layer_norm = requires(const T& x, const P& p) {
  layer_norm(x, p, p);
};
template <class T, class F>
concept can_map = requires(const T& x, const F& f) {
  map(f, x);
};
template <class T>
concept can_dropout = requires(const T& x) {
  dropout(x, 0.1, 1);
};
template <class T>
concept can_scale = requires(const T& x) {
  x * 2.0;
};
template <class T, class Op, class... Ds>
concept can_reduce = requires(const T& x) {
  reduce<Op, Ds...>(x);
};
template <class T>
concept can_measure = requires(const T& x, GlobalNorm<Grid>& norm) {
  norm.add(x);
};

struct Twice {
  float operator()(float x) const { return 2 * x; }
};

static_assert(can_gelu<On<Rows>> && can_gelu<On<Rows, Shard<hidden, tp>>>);
static_assert(!can_gelu<On<Rows, Partial<tp>>> && !can_gelu<On<Rows, Partial<tp, Max>>>);
static_assert(can_softmax<On<Rows, Shard<batch, tp>>>);
static_assert(!can_softmax<On<Rows, Shard<hidden, tp>>> && !can_softmax<On<Rows, Partial<tp>>>);
static_assert(!can_softmax<On<Dims<hidden, batch>>> && !can_softmax<On<Dims<batch>>> && !can_softmax<On<Dims<>>>);
static_assert(can_layer_norm<On<Rows, Shard<batch, tp>>>);
static_assert(!can_layer_norm<On<Rows, Shard<hidden, tp>>> && !can_layer_norm<On<Rows, Partial<tp>>>);
static_assert(!can_layer_norm<On<Rows>, On<Vector, Shard<hidden, tp>>>);
static_assert(!can_layer_norm<On<Rows>, On<Vector, Partial<tp>>> && !can_layer_norm<On<Rows>, On<Rows>>);
static_assert(!can_layer_norm<On<Rows>, Tensor<double, Vector, Layout<Grid>>>);
static_assert(!can_layer_norm<On<Dims<>>>);
static_assert(can_map<On<Rows>, Twice> && can_map<On<Rows, Partial<tp>>, Linear<Twice>>);
static_assert(!can_map<On<Rows, Partial<tp>>, Twice> && !can_map<On<Rows, Partial<tp, Min>>, Linear<Twice>>);
static_assert(can_dropout<On<Rows, Partial<tp>>> && !can_dropout<On<Rows, Partial<tp, Product>>>);
static_assert(can_scale<On<Rows, Partial<tp>>> && !can_scale<On<Rows, Partial<tp, Max>>>);
static_assert(can_reduce<On<Rows, Partial<tp>>, Sum, batch> && can_reduce<On<Rows, Partial<tp, Max>>, Max, batch>);
static_assert(!can_reduce<On<Rows, Partial<tp>>, Max, batch> && !can_reduce<On<Rows, Partial<tp, Max>>, Sum, batch>);
static_assert(can_reduce<On<Rows>, Min, batch, hidden> && !can_reduce<On<Rows>, Min, seq>);
static_assert(can_measure<On<Rows, Shard<batch, tp>>> && !can_measure<On<Rows, Partial<tp>>>);

// Functions of two.
template <class A, class B>
concept can_add = requires(const A& a, const B& b) {
  a + b;
};
template <class A, class B>
concept can_accumulate = requires(A& a, const B& b) {
  a += b;
};
template <class A, class B>
concept can_multiply = requires(const A& a, const B& b) {
  a* b;
};
template <class A, class B>
concept can_zip = requires(const A& a, const B& b) {
  zip(std::declval<float (*)(float, float)>(), a, b);
};
template <class A, class B, class... Ds>
concept can_contract = requires(const A& a, const B& b) {
  contract<Ds...>(a, b);
};
template <class A, class B, class Result>
concept can_einsum = requires(const A& a, const B& b) {
  einsum<Result>(a, b);
};
template <class G, class X>
concept can_gelu_backward = requires(const G& dy, const X& x) {
  gelu_backward(dy, x);
};
template <class G, class P>
concept can_softmax_backward = requires(const G& dp, const P& p) {
  softmax_backward<hidden>(dp, p);
};

static_assert(can_add<On<Rows, Partial<tp>>, On<Rows, Partial<tp>>> && can_add<On<Rows>, On<Vector>>);
static_assert(!can_add<On<Rows, Partial<tp>>, On<Rows>> && !can_add<On<Rows>, On<Rows, Partial<tp>>>);
static_assert(!can_add<On<Rows, Partial<tp>>, On<Vector>> && !can_add<On<Rows>, On<Vector, Partial<tp>>>);
static_assert(!can_add<On<Rows, Partial<tp>>, On<Rows, Partial<tp, Max>>>);
static_assert(!can_add<On<Rows, Partial<tp, Max>>, On<Rows, Partial<tp, Max>>>);
static_assert(!can_add<On<Rows, Shard<batch, tp>>, On<Rows>> && !can_add<On<Vector>, On<Rows>>);
static_assert(!can_add<On<Rows, Shard<batch, dp, tp>>, On<Rows, Shard<batch, tp, dp>>>);
static_assert(!can_add<On<Rows>, On<Dims<hidden, batch>>> && !can_add<On<Rows>, Tensor<double, Rows, Layout<Grid>>>);
static_assert(!can_add<On<Rows>, Tensor<float, Rows, Layout<Mesh<dp>>>>);
static_assert(!can_add<On<Rows>, Tensor<float, Rows, Layout<Mesh<tp, dp>>>>);
static_assert(can_accumulate<On<Rows, Partial<tp>>, On<Rows, Partial<tp>>>);
static_assert(!can_accumulate<On<Rows>, On<Rows, Partial<tp>>>);
static_assert(can_multiply<On<Rows, Partial<tp>>, On<Rows>> && can_multiply<On<Rows>, On<Vector, Partial<tp>>>);
static_assert(!can_multiply<On<Rows, Partial<tp>>, On<Rows, Partial<tp>>>);
static_assert(!can_multiply<On<Rows, Partial<tp, Max>>, On<Rows>>);
static_assert(!can_multiply<On<Rows, Shard<batch, tp>>, On<Vector, Partial<tp>>>);
static_assert(can_zip<On<Rows>, On<Rows>> && !can_zip<On<Rows, Partial<tp>>, On<Rows, Partial<tp>>>);
static_assert(can_contract<On<Rows>, On<Weight>, hidden>);
static_assert(can_contract<On<Rows, Shard<hidden, tp>>, On<Weight, Shard<hidden, tp>>, hidden>);
static_assert(!can_contract<On<Rows>, On<Weight, Shard<hidden, tp>>, hidden>);
static_assert(!can_contract<On<Rows, Shard<hidden, tp>>, On<Weight>, hidden>);
static_assert(!can_contract<On<Rows, Shard<hidden, tp>>, On<Weight, Shard<hidden, dp>>, hidden>);
static_assert(!can_contract<On<Rows, Shard<batch, tp>>, On<Weight, Shard<ffn, tp>>, hidden>);
static_assert(can_contract<On<Rows, Shard<batch, dp>>, On<Weight, Shard<ffn, tp>>, hidden>);
static_assert(can_contract<On<Rows, Partial<tp>>, On<Weight>, hidden>);
static_assert(!can_contract<On<Rows, Partial<tp>>, On<Weight, Partial<tp>>, hidden>);
static_assert(!can_contract<On<Rows, Partial<tp, Min>>, On<Weight>, hidden>);
static_assert(!can_contract<On<Rows>, On<Weight>, vocab> && !can_contract<On<Rows>, On<Weight>, ffn>);
static_assert(!can_contract<On<Dims<batch, seq, hidden>, Shard<batch, dp>>, On<Dims<batch, hidden, ffn>>, hidden>);
static_assert(!can_contract<On<Rows>, Tensor<double, Weight, Layout<Grid>>, hidden>);
static_assert(can_einsum<On<Rows>, On<Weight>, Dims<ffn, batch>> && !can_einsum<On<Rows>, On<Weight>, Dims<ffn>>);
static_assert(!can_einsum<On<Rows>, On<Weight>, Dims<batch, seq>>);
static_assert(can_gelu_backward<On<Rows>, On<Rows>> && can_gelu_backward<On<Rows, Partial<tp>>, On<Rows>>);
static_assert(!can_gelu_backward<On<Rows>, On<Rows, Partial<tp>>>);
static_assert(can_softmax_backward<On<Rows, Shard<batch, tp>>, On<Rows, Shard<batch, tp>>>);
static_assert(!can_softmax_backward<On<Rows>, On<Rows, Shard<batch, tp>>>);
static_assert(!can_softmax_backward<On<Rows, Shard<hidden, tp>>, On<Rows, Shard<hidden, tp>>>);

// Conversions.
template <class T, class... Ps>
concept can_convert = requires(const T& x) {
  convert<Ps...>(x);
};
template <class T, class... Ps>
concept can_view_as = requires(const T& x) {
  view_as<Ps...>(x);
};
template <class T, class A>
concept can_all_gather = requires(const T& x) {
  all_gather<A>(x);
};
template <class T, class A>
concept can_all_reduce = requires(const T& x) {
  all_reduce<A>(x);
};
template <class T, class D, class A>
concept can_reduce_scatter = requires(const T& x) {
  reduce_scatter<D, A>(x);
};
template <class T, class D, class A>
concept can_all_to_all = requires(const T& x) {
  all_to_all<D, A>(x);
};
template <class T, class A>
concept can_enter = requires(const T& x) {
  inside<A>(x);
};
template <class T, class P>
concept can_leave = requires(const Grid& mesh, const T& x) {
  outside<P>(mesh, x);
};
template <class T, class Old, class New>
concept can_rename = requires(const T& x) {
  rename<Old, New>(x);
};

static_assert(can_convert<On<Rows, Shard<batch, dp, tp>>, Replicate<tp>, Replicate<dp>>);
static_assert(!can_convert<On<Rows, Shard<batch, dp, tp>>, Replicate<dp>>);
static_assert(!can_convert<On<Rows>, Shard<batch, cp>> && !can_convert<On<Rows>, Shard<seq, tp>>);
static_assert(!can_convert<On<Rows, Partial<tp>>, Partial<tp, Max>>);
static_assert(can_convert<On<Rows, Partial<tp>>, Replicate<tp>, Partial<tp, Max>>);
static_assert(can_view_as<On<Rows>, Shard<batch, dp>> && can_view_as<On<Rows, Shard<batch, dp>>, Partial<dp>>);
static_assert(!can_view_as<On<Rows, Shard<batch, dp>>, Replicate<dp>>);
static_assert(can_view_as<On<Rows>, Shard<batch, dp>, Replicate<dp>>);  // which is nothing, taken together
static_assert(can_all_gather<On<Rows, Shard<batch, dp>>, dp> && !can_all_gather<On<Rows>, dp>);
static_assert(can_all_reduce<On<Rows, Partial<dp>>, dp> && !can_all_reduce<On<Rows, Shard<batch, dp>>, dp>);
static_assert(can_reduce_scatter<On<Rows, Partial<tp>>, batch, tp> && !can_reduce_scatter<On<Rows>, batch, tp>);
static_assert(!can_reduce_scatter<On<Rows, Partial<tp>>, seq, tp>);
static_assert(can_all_to_all<On<Rows, Shard<batch, tp>>, hidden, tp>);
static_assert(!can_all_to_all<On<Rows, Partial<tp>>, hidden, tp>);
static_assert(can_enter<On<Rows, Shard<batch, dp>>, dp> && can_enter<On<Rows, Partial<tp>>, tp>);
static_assert(!can_enter<On<Rows, Shard<batch, dp, tp>>, dp> && !can_enter<On<Rows, Shard<batch, dp, tp>>, tp>);
static_assert(!can_enter<On<Rows>, cp>);
using Without = Tensor<float, Rows, Layout<Mesh<dp>, Shard<batch, dp>>>;
static_assert(can_leave<Without, Shard<hidden, tp>> && can_leave<Without, Partial<tp>>);
static_assert(!can_leave<Without, Replicate<dp>> && !can_leave<Without, Replicate<cp>>);
static_assert(!can_leave<Without, Shard<seq, tp>> && !can_leave<Without, Shard<batch, tp>>);
static_assert(!can_leave<On<Rows>, Replicate<tp>>);
static_assert(can_rename<On<Rows>, batch, seq> && can_rename<On<Rows, Shard<batch, dp>>, batch, key<batch>>);
static_assert(!can_rename<On<Rows>, batch, hidden> && !can_rename<On<Rows>, seq, ffn>);

// Types that contradict themselves, axes and dims that are not there.
template <class T>
concept can_generate = requires(const Grid& mesh, const Extents<typename T::dims>& extents) {
  generate<T>(mesh, extents, [](const auto&) { return 0.0F; });
};
template <class T>
concept can_assume = requires(const Grid& mesh, const Extents<typename T::dims>& extents,
                              std::span<const float> local) {
  assume<T>(mesh, extents, local);
};
template <class T>
concept can_construct = requires(const Grid& mesh, const Extents<typename T::dims>& extents) {
  T(mesh, extents);
};
template <class T, class D>
concept has_dim = requires(const T& x) {
  x.template extent<D>();
  x.template range<D>();
};
template <class M, class A>
concept has_axis = requires(const M& mesh) {
  mesh.template size<A>();
  mesh.template coordinate<A>();
  mesh.template along<A>();
  mesh.template without<A>();
  mesh.template only<A>();
};

static_assert(can_generate<On<Rows, Shard<batch, tp>>> && !can_generate<On<Rows, Partial<tp>>>);
template <class D, class... Ps>
concept can_assume_as = requires(const Grid& mesh, const Extents<D>& extents, const std::vector<float>& local) {
  assume<D, Ps...>(mesh, extents, local);
};
static_assert(can_assume_as<Rows, Shard<batch, dp>, Partial<tp>> && can_assume_as<Rows>);
static_assert(!can_assume_as<Rows, Shard<seq, dp>> && !can_assume_as<Rows, Shard<batch, tp>, Partial<tp>>);
static_assert(can_assume<On<Rows, Partial<tp>>> && can_construct<On<Rows, Partial<tp>>>);
template <class T>
concept contradiction = !can_generate<T> && !can_assume<T> && !can_construct<T> && !AnyTensor<T>;
static_assert(!contradiction<On<Dims<seq, key<seq>>>> && contradiction<On<Dims<seq, seq>>>);
static_assert(!contradiction<On<Rows, Shard<batch, tp, dp>>>);
static_assert(contradiction<On<Rows, Shard<batch, tp>, Shard<batch, dp>>>);
static_assert(contradiction<On<Rows, Shard<batch, tp>, Shard<hidden, tp>>>);
static_assert(contradiction<On<Rows, Shard<batch, tp>, Partial<tp>>>);
static_assert(contradiction<On<Rows, Shard<batch, tp, tp>>>);
static_assert(contradiction<On<Rows, Shard<batch, cp>>> && contradiction<On<Rows, Shard<seq, tp>>>);
static_assert(has_dim<On<Rows>, batch> && !has_dim<On<Rows>, seq>);
static_assert(has_axis<Grid, tp> && !has_axis<Grid, cp>);

// Tables and indices.
template <class T, class I>
concept can_lookup = requires(const T& table, const I& ids) {
  lookup<vocab>(table, ids);
};
template <class T, class I, class G>
concept can_lookup_backward = requires(const T& table, const I& ids, const G& dy) {
  lookup_backward<vocab>(dy, table, ids);
};
template <class X, class I>
concept can_pick = requires(const X& x, const I& ids) {
  pick<hidden>(x, ids);
};
using Table = Dims<vocab, hidden>;
template <class... Ps>
using IdsOn = Tensor<int, Dims<batch>, Layout<Grid, Ps...>>;

static_assert(can_lookup<On<Table, Shard<vocab, tp>>, IdsOn<Shard<batch, dp>>>);
static_assert(!can_lookup<On<Table, Shard<hidden, tp>>, IdsOn<Shard<batch, tp>>>);
static_assert(!can_lookup<On<Table>, On<Dims<batch>>> && !can_lookup<On<Dims<hidden, vocab>>, Ids>);
static_assert(!can_lookup<On<Rows>, Ids> && !can_lookup<On<Dims<>>, Ids> && !can_lookup<On<Table>, IdsOn<Partial<tp>>>);
static_assert(!can_lookup<On<Table>, Tensor<int, Dims<batch>, Layout<Mesh<dp>>>>);
static_assert(can_lookup_backward<On<Table, Shard<vocab, tp>>, Ids, On<Rows>>);
static_assert(!can_lookup_backward<On<Table, Shard<vocab, tp>>, Ids, On<Rows, Partial<tp>>>);
static_assert(!can_lookup_backward<On<Table, Shard<vocab, tp>>, Ids, On<Rows, Shard<batch, tp>>>);
static_assert(!can_lookup_backward<On<Table>, Ids, On<Dims<batch>>>);
// A sum that is owed over an axis on which the rows are replicated stays owed.
static_assert(std::is_same_v<decltype(lookup_backward<vocab>(std::declval<const On<Rows, Partial<dp>>&>(),
                                                             std::declval<const On<Table>&>(), std::declval<Ids>())),
                             On<Table, Partial<dp>>>);
static_assert(!can_lookup_backward<On<Table>, Ids, On<Rows, Partial<dp, Max>>>);
static_assert(can_pick<On<Rows, Shard<hidden, tp>>, Ids> && !can_pick<On<Rows, Shard<batch, tp>>, Ids>);
static_assert(!can_pick<On<Rows>, On<Dims<batch>>> && !can_pick<On<Dims<hidden, batch>>, Ids>);
static_assert(!can_pick<On<Dims<batch, seq, hidden>>, Ids> && !can_pick<On<Rows, Partial<tp>>, Ids>);

// Gradients.
template <class Value, class G>
concept can_backward = requires(const G& dy) {
  backward_to<Value>(dy);
};
template <class T, class G>
concept can_update = requires(T& w, const G& dw, AdamWState<T>& state) {
  adamw_step(w, dw, state, 1, AdamWOptions{});
};
template <class G, class T = On<Rows>>
concept can_collect = requires(GradientBuckets<dp, float, Grid>& buckets,
                               const typename GradientBuckets<dp, float, Grid>::template Ticket<T>& ticket,
                               const G& dw) {
  buckets.add(ticket, dw);
};
template <class T>
concept can_expect = requires(GradientBuckets<dp, float, Grid>& buckets, const T& w) {
  buckets.expect(w);
};
template <class G, class X>
concept can_layer_norm_backward = requires(const G& dy, const X& x, const On<Vector>& gain) {
  layer_norm_backward(dy, x, layer_norm(x, gain, gain), gain);
};

static_assert(can_backward<On<Rows>, On<Rows>> && can_backward<On<Rows>, On<Rows, Partial<dp>>>);
static_assert(!can_backward<On<Rows>, On<Rows, Shard<batch, dp>>>);
static_assert(can_backward<On<Rows, Partial<tp>>, On<Rows>> && !can_backward<On<Rows, Partial<tp, Max>>, On<Rows>>);
static_assert(!can_backward<On<Rows>, On<Dims<batch>>> && !can_backward<On<Rows>, Without>);
static_assert(can_update<On<Rows, Shard<batch, tp>>, On<Rows, Shard<batch, tp>>>);
static_assert(!can_update<On<Rows>, On<Rows, Partial<dp>>> &&
              !can_update<On<Rows, Partial<dp>>, On<Rows, Partial<dp>>>);
static_assert(!can_update<On<Rows, Shard<batch, tp>>, On<Rows>> && !can_update<On<Rows>, On<Vector>>);
static_assert(!can_update<On<Rows>, Tensor<double, Rows, Layout<Grid>>>);
static_assert(can_collect<On<Rows, Partial<dp>>> &&
              can_collect<On<Rows, Partial<dp>, Shard<batch, tp>>, On<Rows, Shard<batch, tp>>>);
static_assert(!can_collect<On<Rows>> && !can_collect<On<Rows, Partial<tp>>> &&
              !can_collect<On<Rows, Partial<dp, Max>>> && !can_collect<On<Rows, Partial<dp>, Shard<batch, tp>>>);
static_assert(can_expect<On<Rows>> && can_expect<On<Rows, Shard<batch, tp>>> && can_expect<On<Rows, Partial<tp>>>);
static_assert(!can_expect<On<Rows, Shard<batch, dp>>> && !can_expect<On<Rows, Partial<dp>>> &&
              !can_expect<Tensor<double, Rows, Layout<Grid>>>);
static_assert(!can_collect<Tensor<double, Rows, Layout<Grid, Partial<dp>>>>);
static_assert(can_layer_norm_backward<On<Rows, Shard<batch, tp>>, On<Rows, Shard<batch, tp>>>);
static_assert(!can_layer_norm_backward<On<Rows>, On<Rows, Shard<batch, tp>>>);
static_assert(!can_layer_norm_backward<On<Rows, Partial<tp>>, On<Rows>>);

// Compositions refuse what their parts refuse.
template <class X, class W, class B>
concept can_column_linear = requires(const X& x, const W& w, const B& b) {
  column_linear<hidden>(x, w, b);
};
template <class X, class W, class B, class To>
concept can_row_linear = requires(const X& x, const W& w, const B& b) {
  row_linear<To, hidden>(x, w, b);
};
template <class Z, class I>
concept can_cross_entropy = requires(const Z& z, const I& labels) {
  cross_entropy<hidden>(z, labels, 1.0);
};
template <class T, class To>
concept can_embed = requires(const T& table, const Ids& ids) {
  vocabulary_embedding<To, vocab>(table, ids);
};
using Outputs = Dims<ffn>;

static_assert(can_column_linear<On<Rows>, On<Weight, Shard<ffn, tp>>, On<Outputs, Shard<ffn, tp>>>);
static_assert(!can_column_linear<On<Rows>, On<Weight, Shard<ffn, tp>>, On<Outputs>>);
static_assert(!can_column_linear<On<Rows, Shard<batch, tp>>, On<Weight, Shard<ffn, tp>>, On<Outputs, Shard<ffn, tp>>>);
static_assert(can_row_linear<On<Rows, Shard<hidden, tp>>, On<Weight, Shard<hidden, tp>>, On<Outputs>, Replicate<tp>>);
static_assert(!can_row_linear<On<Rows>, On<Weight, Shard<hidden, tp>>, On<Outputs>, Replicate<tp>>);
static_assert(!can_row_linear<On<Rows, Shard<hidden, tp>>, On<Weight, Shard<hidden, tp>>, On<Outputs>, Shard<seq, tp>>);
static_assert(can_cross_entropy<On<Rows, Shard<hidden, tp>>, Ids> && !can_cross_entropy<On<Rows, Partial<tp>>, Ids>);
static_assert(!can_cross_entropy<On<Rows, Shard<batch, dp>>, Ids> && !can_cross_entropy<On<Rows>, On<Dims<batch>>>);
static_assert(can_embed<On<Table, Shard<vocab, tp>>, Replicate<tp>> && !can_embed<On<Table>, Shard<seq, tp>>);

// The names are common words: what is no tensor is none of their business, and ordinary operators keep working in this
// namespace, on compilers that form the return type of a refused overload before they check its constraints.
[[maybe_unused]] std::string concatenated(const std::string& a, const std::string& b) {
  std::string c = a + b + "!";
  c += a;
  return c;
}
[[maybe_unused]] auto after(std::vector<int>::iterator i) { return i + 1 - i; }
[[maybe_unused]] auto appended(detail::list<int> a) { return a + a; }
static_assert(std::is_same_v<decltype(appended({})), detail::list<int, int>>);

struct Other {};
template <class T>
concept is_left_alone =
    !can_gelu<T> && !can_softmax<T> && !can_map<T, Twice> && !can_dropout<T> && !can_add<T, T> && !can_multiply<T, T> &&
    !can_accumulate<T, T> && !can_contract<T, T, hidden> && !can_einsum<T, T, Rows> && !can_reduce<T, Sum, batch> &&
    !can_convert<T, Replicate<tp>> && !can_view_as<T, Replicate<tp>> && !can_all_gather<T, tp> && !can_enter<T, tp> &&
    !can_leave<T, Replicate<tp>> && !can_rename<T, batch, seq> && !can_lookup<T, T> && !can_lookup_backward<T, T, T> &&
    !can_pick<T, T> && !can_backward<T, T> && !can_backward<On<Rows>, T> && !can_zip<T, T> &&
    !can_gelu_backward<T, T> && !can_softmax_backward<T, T> && !can_column_linear<T, T, T> &&
    !can_cross_entropy<T, Ids> && !can_row_linear<T, T, T, Replicate<tp>> && !can_embed<T, Replicate<tp>> &&
    !can_measure<T> && !can_collect<T>;
static_assert(is_left_alone<Other> && is_left_alone<On<Dims<batch, batch>>>);

}  // namespace

namespace other {

using namespace meshwise;
template <class T>
Other contract(const T&, const T&);
template <class T>
Other sum(const std::vector<T>&);
template <class T>
Other layer_norm(const T&, const T&, const T&);
static_assert(requires(const Other& a, const std::vector<int>& v) {
  contract(a, a);
  sum(v);
  layer_norm(a, a, a);
});

}  // namespace other
}  // namespace meshwise
