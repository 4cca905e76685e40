// SPDX-License-Identifier: Apache-2.0
// Under sequence parallelism every rank has seen its own rows: the gradient of a gain is owed.
#include "meshwise/tensor/layer_norm.hpp"

#include "vocabulary.hpp"

// expect(g++): use of deleted function
// expect(g++): Try = try_<convert_<Replicate<tp>>>
// expect(clang++): (invokes a|to) deleted
// note(clang++): try_<convert_<Replicate<tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
On<Vector> user(const On<Rows, Shard<batch, tp>>& dy, const On<Rows, Shard<batch, tp>>& x, const On<Vector>& gain) {
  return layer_norm_backward(dy, x, layer_norm(x, gain, gain), gain).gain;
}
#else
On<Vector> user(const On<Rows, Shard<batch, tp>>& dy, const On<Rows, Shard<batch, tp>>& x, const On<Vector>& gain) {
  return convert<Replicate<tp>>(layer_norm_backward(dy, x, layer_norm(x, gain, gain), gain).gain);
}
#endif
