// SPDX-License-Identifier: Apache-2.0
// Only one rank would have the row.
#include "meshwise/tensor/convert.hpp"
#include "meshwise/tensor/take.hpp"

#include "vocabulary.hpp"

// expect: because::needs_the_whole_dim<batch>, try_<convert_<Replicate<tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Shard<batch, tp>>& x) { return take<batch>(x, 2); }
#else
auto user(const On<Rows, Shard<batch, tp>>& x) { return take<batch>(convert<Replicate<tp>>(x), 2); }
#endif
