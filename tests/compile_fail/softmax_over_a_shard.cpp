// SPDX-License-Identifier: Apache-2.0
// A row of which this rank has a part only.
#include "meshwise/tensor/softmax.hpp"

#include "vocabulary.hpp"

// expect: because::needs_the_whole_dim<hidden>, try_<convert_<Replicate<tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Shard<hidden, tp>>& x) { return softmax<hidden>(x); }
#else
auto user(const On<Rows, Shard<hidden, tp>>& x) { return softmax<hidden>(convert<Replicate<tp>>(x)); }
#endif
