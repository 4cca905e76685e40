// SPDX-License-Identifier: Apache-2.0
// Between a reduce_scatter and an all_reduce somebody has to start the second one.
#include "meshwise/tensor/start_convert.hpp"

#include "vocabulary.hpp"

// expect: because::conversion_is_not_one_collective_of_whole_runs<Replicate<tp>, Shard<batch, dp>>, try_<start_its_steps_one_by_one, or_<use_convert>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Partial<dp>, Partial<tp>>& x) { return start_convert<Replicate<tp>, Shard<batch, dp>>(x); }
#else
auto user(const On<Rows, Partial<dp>, Partial<tp>>& x) { return start_convert<Shard<batch, dp>>(x); }
#endif
