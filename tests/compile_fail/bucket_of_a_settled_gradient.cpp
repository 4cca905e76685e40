// SPDX-License-Identifier: Apache-2.0
#include "meshwise/parallel/data.hpp"

#include "vocabulary.hpp"

// expect: because::gradient_owes_no_sum<dp>, try_<use_it_as_it_is>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(GradientBuckets<dp, float, Grid>& buckets, const On<Rows>& settled) { buckets.add(settled); }
#else
void user(GradientBuckets<dp, float, Grid>& buckets, const On<Rows, Partial<dp>>& owed) { buckets.add(owed); }
#endif
