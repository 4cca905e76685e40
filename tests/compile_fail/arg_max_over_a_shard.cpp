// SPDX-License-Identifier: Apache-2.0
// A row of which this rank has a part only: the index would be one in the part.
#include "meshwise/tensor/arg_max.hpp"

#include "vocabulary.hpp"

// expect: because::needs_the_whole_dim<hidden>, try_<distributed_arg_max_<hidden>, or_<convert_<Replicate<tp>>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Shard<hidden, tp>>& x) { return arg_max<hidden>(x); }
#else
auto user(const On<Rows, Shard<hidden, tp>>& x) { return distributed_arg_max<hidden>(x); }
#endif
