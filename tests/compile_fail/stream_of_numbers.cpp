// SPDX-License-Identifier: Apache-2.0
// Only tensors like the pieces travel to the owners of these.
#include "meshwise/tensor/stream.hpp"

#include "vocabulary.hpp"

// expect: because::function_contributes_no_tensor<double>, try_<return_nothing_or_a_tensor_like_the_piece>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(const On<Rows, Shard<batch, tp>>& x) {
  stream<tp>(x, [](const auto&, int) { return 0.5; });
}
#else
void user(const On<Rows, Shard<batch, tp>>& x) {
  stream<tp>(x, [](const auto& piece, int) { return piece; });
}
#endif
