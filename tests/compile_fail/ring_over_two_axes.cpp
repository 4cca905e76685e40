// SPDX-License-Identifier: Apache-2.0
// Queries are cut by one axis, keys by another one: the ring of neither meets all of them.
#include "meshwise/parallel/context.hpp"

#include "vocabulary.hpp"

using Queries = On<Dims<seq, heads, head_dim>, Shard<seq, dp>>;
using Keys = On<Dims<key<seq>, kv, head_dim>, Shard<key<seq>, tp>>;

// expect: because::dim_placed_differently_in_the_operands<key<seq>>, try_<convert_second_operand_<Replicate<tp>, Shard<key<seq>, dp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const Queries& q, const Keys& k, const Keys& v) { return ring_attention<dp>(q, k, v, CausalMask{}, 0.125); }
#else
auto user(const Queries& q, const Keys& k, const Keys& v) {
  const auto some_k = convert<Replicate<tp>, Shard<key<seq>, dp>>(k);
  const auto some_v = convert<Replicate<tp>, Shard<key<seq>, dp>>(v);
  return ring_attention<dp>(q, some_k, some_v, CausalMask{}, 0.125);
}
#endif
