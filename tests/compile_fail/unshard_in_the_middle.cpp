// SPDX-License-Identifier: Apache-2.0
// What tp cuts within the parts of dp has to be undone first.
#include "meshwise/parallel/fully_shard.hpp"

#include "vocabulary.hpp"

// expect: because::axis_is_not_minor_most_in_its_dim<dp, batch>, try_<move_the_minor_axes_first
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Shard<batch, dp, tp>>& w) { return start_unshard<dp>(w); }
#else
auto user(const On<Rows, Shard<batch, tp, dp>>& w) { return start_unshard<dp>(w); }
#endif
