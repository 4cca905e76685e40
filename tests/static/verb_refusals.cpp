// SPDX-License-Identifier: Apache-2.0
// Claims, slices and streams that must not compile, as `requires` sees them; compile_fail/ has their texts.
#include "meshwise/tensor/assume.hpp"
#include "meshwise/tensor/start_convert.hpp"
#include "meshwise/tensor/stream.hpp"
#include "meshwise/tensor/take.hpp"

namespace {

using namespace meshwise;

using Grid = Mesh<dp, tp>;
using Rows = Dims<batch, hidden>;
template <class D, class... Ps>
using On = Tensor<float, D, Layout<Grid, Ps...>>;
using Whole = On<Rows>;
using Owed = On<Rows, Partial<tp>>;
using Cut = On<Rows, Shard<batch, tp>>;
using Twice = On<Rows, Shard<batch, dp, tp>>;
using Folded = On<Rows, Shard<batch, Zigzag<tp>>>;

template <class X, class... Ps>
concept can_claim = requires(const X& x) {
  requires AnyTensor<decltype(assume<Ps...>(x))>;
};
static_assert(can_claim<Cut, Shard<batch, Zigzag<tp>>> && can_claim<Whole, Partial<tp>>);
static_assert(!can_claim<Owed, Replicate<tp>> && !can_claim<Owed, Layout<Grid>>);
static_assert(!can_claim<Whole, Shard<batch, tp>> && !can_claim<Cut, Replicate<tp>>);

template <class X, class D, class Index>
concept can_take = requires(const X& x, Index i) {
  requires AnyTensor<decltype(take<D>(x, i))>;
};
static_assert(can_take<Cut, hidden, Range> && can_take<Cut, hidden, int> && can_take<Owed, batch, Range>);
static_assert(!can_take<Cut, batch, Range> && !can_take<Cut, batch, int> && !can_take<Cut, seq, int>);
static_assert(!can_take<Folded, batch, Range>);

template <class X, class Index, class G>
concept can_put_back = requires(const X& x, Index i, const G& dy) {
  requires AnyTensor<decltype(take_backward<batch>(dy, x, i))>;
};
static_assert(can_put_back<Whole, Range, Owed> && can_put_back<Whole, int, On<Dims<hidden>>>);
static_assert(!can_put_back<Whole, Range, On<Dims<hidden>>> && !can_put_back<Whole, int, Whole>);
static_assert(!can_put_back<Whole, Range, Cut> && !can_put_back<Cut, Range, Whole>);

template <class X, class... Ps>
concept can_start = requires(const X& x) {
  start_convert<Ps...>(x).wait();
};
static_assert(can_start<Owed, Replicate<tp>> && can_start<Cut, Replicate<tp>> && can_start<Cut, Shard<hidden, tp>>);
static_assert(can_start<Twice, Replicate<tp>, Replicate<dp>> && can_start<Whole, Shard<batch, Zigzag<tp>>>);
static_assert(!can_start<Folded, Replicate<tp>> && !can_start<Twice, Shard<batch, tp, dp>>);
static_assert(!can_start<On<Rows, Partial<dp>, Partial<tp>>, Shard<batch, tp>, Replicate<dp>>);
static_assert(!can_start<Twice, Replicate<dp>> && !can_start<Owed, Partial<tp, Max>>);

struct Look {
  template <class... Any>
  void operator()(const Any&...) const {}
};
template <class F, class... Xs>
inline constexpr bool streams = detail::is_accepted<detail::stream_along<F, tp, Xs...>>;
using Piece = Tensor<float, Rows, Layout<Mesh<dp>>>;
static_assert(streams<Look, Cut> && streams<Look, Folded, Folded> && streams<Piece (*)(const Piece&, int), Cut>);
static_assert(!streams<Look, Whole> && !streams<Look, Owed> && !streams<Look, Twice> && !streams<Look, Cut, Folded>);
static_assert(!streams<void (*)(const Piece&), Cut> && !streams<double (*)(const Piece&, int), Cut>);

}  // namespace
