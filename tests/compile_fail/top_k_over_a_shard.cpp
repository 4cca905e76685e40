// SPDX-License-Identifier: Apache-2.0
// A row cut by two axes, of which this rank has a part only.
#include "meshwise/tensor/top_k.hpp"

#include "vocabulary.hpp"

// expect: because::needs_the_whole_dim<hidden>, try_<distributed_top_k_<hidden>, or_<convert_<Replicate<tp>, Replicate<dp>>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Shard<hidden, dp, tp>>& x) { return top_k<hidden>(x, 5).indices; }
#else
auto user(const On<Rows, Shard<hidden, dp, tp>>& x) { return distributed_top_k<hidden>(x, 5).indices; }
#endif
