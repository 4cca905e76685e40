// SPDX-License-Identifier: Apache-2.0
// A part of an uneven split is not split evenly.
#include "meshwise/tensor/stream.hpp"

#include "vocabulary.hpp"

// expect: because::axis_does_not_shard_its_dim_alone<tp>, try_<move_the_other_axes_of_its_dim_first>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(const On<Rows, Shard<batch, dp, tp>>& x) {
  stream<tp>(x, [](const auto&, int) {});
}
#else
void user(const On<Rows, Shard<batch, tp>>& x) {
  stream<tp>(x, [](const auto&, int) {});
}
#endif
