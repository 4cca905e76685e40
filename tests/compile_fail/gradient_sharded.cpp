// SPDX-License-Identifier: Apache-2.0
// Only the user knows whether the parts are all there is, or a sum is owed.
#include "meshwise/tensor/backward.hpp"

#include "vocabulary.hpp"

// expect: because::gradient_arrives_sharded_where_the_value_is_replicated<dp>
// expect: try_<convert_the_gradient_yourself_to_Partial_or_Replicate>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Shard<batch, dp>>& dy) { return backward_to<On<Rows>>(dy); }
#else
auto user(const On<Rows, Shard<batch, dp>>& dy) { return backward_to<On<Rows>>(convert<Replicate<dp>>(dy)); }
#endif
