// SPDX-License-Identifier: Apache-2.0
// A part of an uneven split is not split evenly.
#include "meshwise/tensor/inside.hpp"

#include "vocabulary.hpp"

// expect: because::axis_does_not_shard_its_dim_alone<dp>, try_<move_the_other_axes_of_its_dim_first>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Shard<batch, dp, tp>>& x) { return inside<dp>(x); }
#else
auto user(const On<Rows, Shard<batch, dp, tp>>& x) { return inside<dp>(convert<Replicate<tp>>(x)); }
#endif
