// SPDX-License-Identifier: Apache-2.0
// Query heads on ranks that have the keys of other heads.
#include "meshwise/tensor/attention.hpp"

#include "vocabulary.hpp"

using Queries = On<Dims<seq, heads, head_dim>, Shard<heads, tp>>;
template <class... Ps>
using Keys = On<Dims<key<seq>, kv, head_dim>, Ps...>;
using Scores = Dims<heads, seq, key<seq>>;

// expect: because::heads_are_placed_apart_from_what_they_share<heads, kv>, try_<convert_second_operand_<Replicate<dp>, Shard<kv, tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const Queries& q, const Keys<Shard<kv, dp>>& k) { return shared_einsum<Scores, heads, kv>(q, k); }
#else
auto user(const Queries& q, const Keys<Shard<kv, dp>>& k) {
  return shared_einsum<Scores, heads, kv>(q, convert<Replicate<dp>, Shard<kv, tp>>(k));
}
#endif
