// SPDX-License-Identifier: Apache-2.0
// The stage decides how dp holds a parameter: it takes what every rank along dp has.
#include "meshwise/parallel/zero.hpp"

#include "vocabulary.hpp"

using Model = Zero<Zero3<dp>, float, Grid>;

// expect: because::value_is_not_replicated_over<dp>, try_<convert_<Replicate<dp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(Model& zero, const On<Rows, Shard<batch, dp>>& w) { zero.add(w); }
#else
void user(Model& zero, const On<Rows, Shard<batch, dp>>& w) { zero.add(convert<Replicate<dp>>(w)); }
#endif
