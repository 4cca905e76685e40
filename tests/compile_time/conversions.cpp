// SPDX-License-Identifier: Apache-2.0
// A hundred conversions, no two between the same layouts, over a mesh with three axes: what the types of a conversion
// cost, and choosing its plan. The budget is for what follows the includes.
// budget: 2000 ms beyond the includes
#include "meshwise/tensor/convert.hpp"
#include "meshwise/tensor/reshard.hpp"

using namespace meshwise;

using Grid = Mesh<dp, cp, tp>;

template <class... Ps>
using On = Tensor<float, Dims<batch, seq, hidden>, Layout<Grid, Ps...>>;

template <class X>
void ten_from(const X& x) {
  static_cast<void>(convert<Replicate<cp>>(x));
  static_cast<void>(convert<Replicate<tp>>(x));
  static_cast<void>(convert<Replicate<cp>, Replicate<tp>>(x));
  static_cast<void>(convert<Replicate<cp>, Shard<hidden, tp>>(x));
  static_cast<void>(convert<Shard<hidden, cp>, Replicate<tp>>(x));
  static_cast<void>(reshard<Layout<Grid, Shard<seq, dp>>>(x));
  static_cast<void>(reshard<Layout<Grid, Shard<batch, dp>, Shard<seq, cp>, Shard<hidden, tp>>>(x));
  static_cast<void>(reshard<Layout<Grid, Shard<batch, dp, tp>, Shard<seq, cp>>>(x));
  static_cast<void>(reshard<Layout<Grid, Shard<batch, dp>, Shard<hidden, tp, cp>>>(x));
  static_cast<void>(reshard<Layout<Grid, Shard<batch, tp, cp, dp>>>(x));
}

template <class... Ps>
const On<Ps...>& on();

/// No axis but dp is replicated before, one is afterwards, or the layout is one that is not listed here.
void hundred_conversions() {
  ten_from(on<Shard<batch, dp>, Shard<seq, cp>, Partial<tp>>());
  ten_from(on<Shard<batch, dp>, Partial<cp>, Shard<seq, tp>>());
  ten_from(on<Shard<batch, dp>, Shard<hidden, cp>, Shard<seq, tp>>());
  ten_from(on<Shard<batch, dp>, Partial<cp>, Partial<tp>>());
  ten_from(on<Shard<batch, dp, cp>, Shard<seq, tp>>());
  ten_from(on<Partial<dp>, Shard<seq, cp>, Partial<tp>>());
  ten_from(on<Partial<dp>, Partial<cp>, Shard<seq, tp>>());
  ten_from(on<Partial<dp>, Shard<hidden, cp>, Shard<seq, tp>>());
  ten_from(on<Partial<dp>, Partial<cp>, Partial<tp>>());
  ten_from(on<Partial<dp>, Shard<batch, cp>, Shard<seq, tp>>());
}
