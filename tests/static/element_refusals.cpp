// SPDX-License-Identifier: Apache-2.0
// Refusals of elements, of functions of elements, and of dims that results would have twice: each one beside its remedy.
#include "meshwise/parallel/vocabulary.hpp"
#include "meshwise/tensor/activation.hpp"
#include "meshwise/tensor/contract.hpp"
#include "meshwise/tensor/dropout.hpp"
#include "meshwise/tensor/generate.hpp"
#include "meshwise/tensor/layer_norm.hpp"
#include "meshwise/tensor/softmax.hpp"

namespace meshwise {
namespace {

using Grid = Mesh<dp, tp>;
template <class D, class... Ps>
using On = Tensor<float, D, Layout<Grid, Ps...>>;
template <class E>
using Of = Tensor<E, Dims<batch, seq>, Layout<Grid>>;
using Rows = Dims<batch, hidden>;
using Ids = Tensor<int, Dims<batch>, Layout<Grid>>;

// Functions of real numbers.
template <class T>
concept can_gelu = requires(const T& x) {
  gelu(x);
};
template <class T>
concept can_gelu_backward = requires(const T& x) {
  gelu_backward(x, x);
};
template <class T>
concept can_softmax = requires(const T& x) {
  softmax<seq>(x);
};
template <class T>
concept can_softmax_backward = requires(const T& x) {
  softmax_backward<seq>(x, x);
};
template <class T>
concept can_drop = requires(const T& x) {
  dropout(x, 0.25, 1);
};
template <class T, class P>
concept can_normalise = requires(const T& x, const P& p) {
  layer_norm(x, p, p);
};
template <class T>
concept can_lose = requires(const T& x, const Ids& ids) {
  cross_entropy<seq>(x, ids, 1.0);
};
static_assert(can_gelu<Of<bf16>> && !can_gelu<Of<int>> && !can_gelu<Of<std::uint64_t>>);
static_assert(can_gelu_backward<Of<double>> && !can_gelu_backward<Of<int>>);
static_assert(can_softmax<Of<fp16>> && !can_softmax<Of<std::int8_t>>);
static_assert(can_softmax_backward<Of<float>> && !can_softmax_backward<Of<int>>);
static_assert(can_drop<Of<f8e4m3>> && !can_drop<Of<std::int64_t>>);
static_assert(can_normalise<Of<float>, On<Dims<seq>>>);
static_assert(!can_normalise<Of<int>, Tensor<int, Dims<seq>, Layout<Grid>>>);
static_assert(can_lose<Of<float>> && !can_lose<Of<int>>);

// Functions of elements and of indices.
template <class F, class T>
concept can_map = requires(const F& f, const T& x) {
  map(f, x);
};
template <class F, class T>
concept can_zip = requires(const F& f, const T& x) {
  zip(f, x, x);
};
template <class F, class T>
concept can_generate = requires(const F& f, const Grid& mesh) {
  generate<T>(mesh, {4, 8}, f);
};
struct Changes {
  float operator()(float a) { return a; }
  float operator()(float a, float) { return a; }
  float operator()(const Index<Rows>&) { return 1; }
};
using One = float (*)(float);
using Two = double (*)(double, double);
static_assert(can_map<One, On<Rows>> && can_map<Linear<One>, On<Rows, Partial<tp>>> && can_map<One, Of<bf16>>);
static_assert(!can_map<Two, On<Rows>> && !can_map<void (*)(float), On<Rows>> && !can_map<Changes, On<Rows>>);
static_assert(!can_map<Linear<Two>, On<Rows>> && !can_map<One, On<Rows, Partial<tp>>>);
static_assert(can_zip<Two, On<Rows>> && !can_zip<One, On<Rows>> && !can_zip<Changes, On<Rows>>);
static_assert(can_zip<LinearInFirst<Two>, On<Rows>> && !can_zip<const char* (*)(float, float), On<Rows>>);
static_assert(can_generate<int (*)(const Index<Rows>&), On<Rows>> && !can_generate<One, On<Rows>>);
static_assert(!can_generate<int (*)(const Index<Dims<batch, seq>>&), On<Rows>> && !can_generate<Changes, On<Rows>>);

// Dims that would be there twice, and more dims than there may be.
template <class R, class A, class B>
concept can_einsum = requires(const A& a, const B& b) {
  einsum<R>(a, b);
};
template <class A, class B, class... Ds>
concept can_contract = requires(const A& a, const B& b) {
  contract<Ds...>(a, b);
};
template <class Table>
concept can_look_up = requires(const Table& table, const Ids& ids) {
  lookup<vocab>(table, ids);
};
using Weight = On<Dims<hidden, ffn>>;
static_assert(can_einsum<Dims<batch, ffn>, On<Rows>, Weight> && !can_einsum<Dims<batch, ffn, batch>, On<Rows>, Weight>);
static_assert(can_contract<On<Rows>, Weight, hidden> && !can_contract<On<Rows>, Weight, hidden, hidden>);
static_assert(can_look_up<On<Dims<vocab, hidden>>> && !can_look_up<On<Dims<vocab, batch>>>);

template <int>
struct nth : dim {};
template <class... Ds>
using Nine = On<Dims<nth<0>, nth<1>, nth<2>, nth<3>, nth<4>, nth<5>, nth<6>, nth<7>, Ds...>>;
static_assert(can_contract<Nine<hidden>, On<Dims<hidden, batch, seq, ffn, vocab>>, hidden>);
static_assert(!can_contract<Nine<hidden>, On<Dims<hidden, batch, seq, ffn, vocab, heads>>, hidden>);
static_assert(AnyTensor<Nine<hidden, batch, seq, ffn>> && !AnyTensor<Nine<hidden, batch, seq, ffn, vocab>>);

}  // namespace
}  // namespace meshwise
