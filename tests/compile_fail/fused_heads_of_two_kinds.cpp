// SPDX-License-Identifier: Apache-2.0
// Heads of keys are called kv in a fused projection, also if every head has its own.
#include "meshwise/parallel/fused_projection.hpp"

#include "vocabulary.hpp"

// expect: because::dims_differ, try_<give_both_the_same_dims_in_the_same_order>
using Heads = On<Dims<hidden, heads, head_dim>, Shard<heads, tp>>;
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const Heads& q, const Heads& k, const Heads& v) { return fuse_projections(q, k, v, 3); }
#else
auto user(const Heads& q, const Heads& k, const Heads& v) {
  return fuse_projections(q, rename<heads, kv>(k), rename<heads, kv>(v), 3);
}
#endif
