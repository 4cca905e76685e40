// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/named.hpp"

#include "vocabulary.hpp"

// expect: because::conversion_is_not_the_one_named<.*all_reduce>, .*all_gather>>, try_<convert_<Replicate<dp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Shard<batch, dp>>& x) { return all_reduce<dp>(x); }
#else
auto user(const On<Rows, Shard<batch, dp>>& x) { return all_gather<dp>(x); }
#endif
