// SPDX-License-Identifier: Apache-2.0
// The pieces of one coordinate would be of other rows.
#include "meshwise/tensor/convert.hpp"
#include "meshwise/tensor/stream.hpp"

#include "vocabulary.hpp"

// expect: because::axis_cuts_the_tensors_differently<tp>, try_<convert_or_rename_to_cut_them_alike>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(const On<Rows, Shard<batch, tp>>& k, const On<Rows, Shard<batch, Zigzag<tp>>>& v) {
  stream<tp>(std::tie(k, v), [](const auto&, const auto&, int) {});
}
#else
void user(const On<Rows, Shard<batch, tp>>& k, const On<Rows, Shard<batch, Zigzag<tp>>>& v) {
  const auto alike = convert<Shard<batch, tp>>(v);
  stream<tp>(std::tie(k, alike), [](const auto&, const auto&, int) {});
}
#endif
