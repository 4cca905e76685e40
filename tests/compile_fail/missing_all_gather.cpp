// SPDX-License-Identifier: Apache-2.0
// Rows and columns of a product split by one axis: half of the blocks would be nowhere.
#include "meshwise/parallel/tensor.hpp"

#include "vocabulary.hpp"

// expect: because::axis_placed_twice<tp>
// expect: try_<convert_first_operand_<Replicate<tp>>, or_<convert_second_operand_<Replicate<tp>>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Shard<batch, tp>>& x, const On<Weight, Shard<ffn, tp>>& w,
          const On<Dims<ffn>, Shard<ffn, tp>>& bias) {
  return column_linear<hidden>(x, w, bias);
}
#else
auto user(const On<Rows, Shard<batch, tp>>& x, const On<Weight, Shard<ffn, tp>>& w,
          const On<Dims<ffn>, Shard<ffn, tp>>& bias) {
  return column_linear<hidden>(convert<Replicate<tp>>(x), w, bias);
}
#endif
