// SPDX-License-Identifier: Apache-2.0
// A dim that both have and that is kept.
#include "meshwise/tensor/contract.hpp"

#include "vocabulary.hpp"

// expect: because::dim_placed_differently_in_the_operands<batch>, try_<convert_second_operand_<Shard<batch, dp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Dims<batch, seq, hidden>, Shard<batch, dp>>& x, const On<Dims<batch, hidden, ffn>>& w) {
  return contract<hidden>(x, w);
}
#else
auto user(const On<Dims<batch, seq, hidden>, Shard<batch, dp>>& x, const On<Dims<batch, hidden, ffn>>& w) {
  return contract<hidden>(x, convert<Shard<batch, dp>>(w));
}
#endif
