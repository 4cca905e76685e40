// SPDX-License-Identifier: Apache-2.0
// Cut by its parts, a fused projection would give one rank the queries and another the values.
#include "meshwise/parallel/fused_projection.hpp"

#include "vocabulary.hpp"

// expect: because::needs_the_whole_dim<query_key_value>, try_<convert_<Replicate<tp>>>
using Fused = On<Dims<hidden, kv, query_key_value, head_dim>, Shard<query_key_value, tp>>;
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const Fused& w) { return split_projections(w); }
#else
auto user(const Fused& w) { return split_projections(convert<Replicate<tp>>(w)); }
#endif
