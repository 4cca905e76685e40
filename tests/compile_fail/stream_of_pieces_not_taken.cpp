// SPDX-License-Identifier: Apache-2.0
// A function of the piece alone does not know whose it is.
#include "meshwise/tensor/stream.hpp"

#include "vocabulary.hpp"

// expect: because::function_does_not_take_the_pieces, try_<take_a_piece_of_each_tensor_and_an_int>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(const On<Rows, Shard<batch, tp>>& x) {
  stream<tp>(x, [](const auto&) {});
}
#else
void user(const On<Rows, Shard<batch, tp>>& x) {
  stream<tp>(x, [](const auto&, int) {});
}
#endif
