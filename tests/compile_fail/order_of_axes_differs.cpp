// SPDX-License-Identifier: Apache-2.0
// Equal axes in another order are another placement.
#include "meshwise/tensor/elementwise.hpp"

#include "vocabulary.hpp"

// expect: because::dim_placed_differently_in_the_operands<batch>
// expect: try_<convert_second_operand_<Replicate<tp>, Shard<batch, dp, tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Shard<batch, dp, tp>>& x, const On<Rows, Shard<batch, tp>>& y) { return x + y; }
#else
auto user(const On<Rows, Shard<batch, dp, tp>>& x, const On<Rows, Shard<batch, tp>>& y) {
  return x + convert<Replicate<tp>, Shard<batch, dp, tp>>(y);
}
#endif
