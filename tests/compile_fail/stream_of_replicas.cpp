// SPDX-License-Identifier: Apache-2.0
// Every rank has it all.
#include "meshwise/tensor/stream.hpp"

#include "vocabulary.hpp"

// expect: because::axis_cuts_no_dim<tp>, try_<use_inside>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(const On<Rows>& x) {
  stream<tp>(x, [](const auto&, int) {});
}
#else
void user(const On<Rows, Shard<batch, tp>>& x) {
  stream<tp>(x, [](const auto&, int) {});
}
#endif
