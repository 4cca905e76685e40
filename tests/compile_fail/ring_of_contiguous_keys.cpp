// SPDX-License-Identifier: Apache-2.0
// Zigzag queries, contiguous keys: a rank's keys would be those of other positions than its queries.
#include "meshwise/parallel/context.hpp"

#include "vocabulary.hpp"

using Queries = On<Dims<seq, heads, head_dim>, Shard<seq, Zigzag<tp>>>;
using Keys = On<Dims<key<seq>, kv, head_dim>, Shard<key<seq>, tp>>;

// expect: because::dim_placed_differently_in_the_operands<key<seq>>, try_<convert_second_operand_<Replicate<tp>, Shard<key<seq>, Zigzag<tp>>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const Queries& q, const Keys& k, const Keys& v) { return ring_attention<tp>(q, k, v, CausalMask{}, 0.125); }
#else
auto user(const Queries& q, const Keys& k, const Keys& v) {
  const auto some_k = convert<Replicate<tp>, Shard<key<seq>, Zigzag<tp>>>(k);
  const auto some_v = convert<Replicate<tp>, Shard<key<seq>, Zigzag<tp>>>(v);
  return ring_attention<tp>(q, some_k, some_v, CausalMask{}, 0.125);
}
#endif
