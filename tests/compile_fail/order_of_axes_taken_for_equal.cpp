// SPDX-License-Identifier: Apache-2.0
// The same axes cut the same dim in another order: nothing would move, and every rank would hold another's rows.
#include "meshwise/tensor/convert.hpp"

#include "vocabulary.hpp"

// expect(g++): use of deleted function
// expect(g++): Try = try_<convert_<Replicate<tp>, Replicate<dp>, Shard<batch, tp, dp>>>
// expect(clang++): invokes a deleted function
// expect(clang++): dp, tp>.*tp, dp>
// note(clang++): try_<convert_<Replicate<tp>, Replicate<dp>, Shard<batch, tp, dp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
On<Rows, Shard<batch, tp, dp>> user(const On<Rows, Shard<batch, dp, tp>>& x) { return x; }
#else
On<Rows, Shard<batch, tp, dp>> user(const On<Rows, Shard<batch, dp, tp>>& x) {
  return convert<Replicate<tp>, Replicate<dp>, Shard<batch, tp, dp>>(x);
}
#endif
