// SPDX-License-Identifier: Apache-2.0
// A row cut by two axes: the minor one leaves first.
#include "meshwise/tensor/layer_norm.hpp"

#include "vocabulary.hpp"

// expect: because::needs_the_whole_dim<hidden>, try_<convert_<Replicate<tp>, Replicate<dp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Shard<hidden, dp, tp>>& x, const On<Vector>& gain, const On<Vector>& bias) {
  return layer_norm(x, gain, bias);
}
#else
auto user(const On<Rows, Shard<hidden, dp, tp>>& x, const On<Vector>& gain, const On<Vector>& bias) {
  return layer_norm(convert<Replicate<tp>, Replicate<dp>>(x), gain, bias);
}
#endif
