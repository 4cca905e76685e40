// SPDX-License-Identifier: Apache-2.0
// A gradient that has to be placed like the probabilities.
#include "meshwise/tensor/softmax.hpp"

#include "vocabulary.hpp"

// expect: because::layouts_differ, try_<convert_<Shard<batch, tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows>& dy, const On<Rows, Shard<batch, tp>>& p) { return softmax_backward<hidden>(dy, p); }
#else
auto user(const On<Rows>& dy, const On<Rows, Shard<batch, tp>>& p) {
  return softmax_backward<hidden>(convert<Shard<batch, tp>>(dy), p);
}
#endif
