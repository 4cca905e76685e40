// SPDX-License-Identifier: Apache-2.0
// What is cut within the parts of dp has to be undone first.
#include "meshwise/tensor/convert.hpp"

#include "vocabulary.hpp"

// expect: because::axis_is_not_minor_most_in_its_dim<dp, batch>, try_<move_the_minor_axes_first, or_<reshard_to_the_layout_wanted>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Shard<batch, dp, tp>>& x) { return convert<Replicate<dp>>(x); }
#else
auto user(const On<Rows, Shard<batch, dp, tp>>& x) { return convert<Replicate<tp>, Replicate<dp>>(x); }
#endif
