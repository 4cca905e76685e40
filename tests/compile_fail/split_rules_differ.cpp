// SPDX-License-Identifier: Apache-2.0
// The same axis, but other rows: first and last ones together here, neighbours there.
#include "meshwise/tensor/elementwise.hpp"

#include "vocabulary.hpp"

// expect: because::dim_placed_differently_in_the_operands<batch>, try_<convert_second_operand_<Replicate<tp>, Shard<batch, Zigzag<tp>>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Shard<batch, Zigzag<tp>>>& x, const On<Rows, Shard<batch, tp>>& y) { return x + y; }
#else
auto user(const On<Rows, Shard<batch, Zigzag<tp>>>& x, const On<Rows, Shard<batch, tp>>& y) {
  return x + convert<Replicate<tp>, Shard<batch, Zigzag<tp>>>(y);
}
#endif
