// SPDX-License-Identifier: Apache-2.0
// The rows are cut over dp; along tp there is nothing to gather.
#include "meshwise/tensor/named.hpp"

#include "vocabulary.hpp"

// expect: because::conversion_is_not_the_one_named<.*all_gather>, .*equal>>, try_<name_another_axis_or_leave_it_out>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Shard<batch, dp>>& x) { return all_gather<tp>(x); }
#else
auto user(const On<Rows, Shard<batch, dp>>& x) { return all_gather<dp>(x); }
#endif
