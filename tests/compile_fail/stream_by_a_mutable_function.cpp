// SPDX-License-Identifier: Apache-2.0
// The pieces arrive by a const function.
#include "meshwise/tensor/stream.hpp"

#include "vocabulary.hpp"

// expect: because::function_is_mutable, try_<capture_by_reference_instead_of_mutable>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(const On<Rows, Shard<batch, tp>>& x) {
  stream<tp>(x, [pieces = 0](const auto&, int) mutable { ++pieces; });
}
#else
void user(const On<Rows, Shard<batch, tp>>& x) {
  int pieces = 0;
  stream<tp>(x, [&pieces](const auto&, int) { ++pieces; });
}
#endif
