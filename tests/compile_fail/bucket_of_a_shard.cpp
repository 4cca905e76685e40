// SPDX-License-Identifier: Apache-2.0
// The gradient of what dp splits is a part of its own on every rank: there is nothing to sum.
#include "meshwise/parallel/data.hpp"

#include "vocabulary.hpp"

using Buckets = GradientBuckets<dp, float, Grid>;

// expect: because::value_is_not_replicated_over<dp>, try_<convert_<Replicate<dp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(Buckets& buckets, const On<Rows, Shard<batch, dp>>& w) { buckets.expect(w); }
#else
void user(Buckets& buckets, const On<Rows, Shard<batch, dp>>& w) { buckets.expect(convert<Replicate<dp>>(w)); }
#endif
