// SPDX-License-Identifier: Apache-2.0
// The rows are on some of the ranks only.
#include "meshwise/tensor/convert.hpp"
#include "meshwise/tensor/take.hpp"

#include "vocabulary.hpp"

// expect: because::needs_the_whole_dim<batch>, try_<convert_<Replicate<tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Shard<batch, tp>>& x) { return take<batch>(x, Range{0, 2}); }
#else
auto user(const On<Rows, Shard<batch, tp>>& x) { return take<batch>(convert<Replicate<tp>>(x), Range{0, 2}); }
#endif
