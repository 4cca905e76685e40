// SPDX-License-Identifier: Apache-2.0
// What tp cuts lies within the parts of dp: the parts of dp alone are not there to be exchanged.
#include "meshwise/parallel/ulysses.hpp"

#include "vocabulary.hpp"

using Queries = On<Dims<seq, heads, head_dim>, Shard<seq, dp, tp>>;
using Keys = On<Dims<key<seq>, kv, head_dim>, Shard<key<seq>, dp, tp>>;

// expect: because::axis_is_not_minor_most_in_its_dim<dp, seq>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const Queries& q, const Keys& k, const Keys& v) {
  return ulysses_attention<dp>(q, k, v, CausalMask{}, 0.125);
}
#else
auto user(const Queries& q, const Keys& k, const Keys& v) {
  const auto outer_q = convert<Shard<heads, tp>>(q);
  const auto outer_k = convert<Shard<kv, tp>>(k), outer_v = convert<Shard<kv, tp>>(v);
  return ulysses_attention<dp>(outer_q, outer_k, outer_v, CausalMask{}, 0.125);
}
#endif
