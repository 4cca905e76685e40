// SPDX-License-Identifier: Apache-2.0
// The other operand uses the axis otherwise: make the dim whole.
#include "meshwise/parallel/tensor.hpp"

#include "vocabulary.hpp"

// expect: because::contraction_sharded_on_one_side<hidden>, try_<convert_first_operand_<Replicate<tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Shard<hidden, tp>>& x, const On<Weight, Shard<ffn, tp>>& w,
          const On<Dims<ffn>, Shard<ffn, tp>>& bias) {
  return column_linear<hidden>(x, w, bias);
}
#else
auto user(const On<Rows, Shard<hidden, tp>>& x, const On<Weight, Shard<ffn, tp>>& w,
          const On<Dims<ffn>, Shard<ffn, tp>>& bias) {
  return column_linear<hidden>(convert<Replicate<tp>>(x), w, bias);
}
#endif
