// SPDX-License-Identifier: Apache-2.0
// Values of other positions than their keys.
#include "meshwise/parallel/context.hpp"

#include "vocabulary.hpp"

using Queries = On<Dims<seq, heads, head_dim>, Shard<seq, Zigzag<tp>>>;
template <class... Ps>
using Keys = On<Dims<key<seq>, kv, head_dim>, Ps...>;
using Folded = Keys<Shard<key<seq>, Zigzag<tp>>>;

// expect: because::layouts_differ, try_<convert_<Shard<key<seq>, Zigzag<tp>>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const Queries& q, const Folded& k, const Keys<>& v) {
  return ring_attention<tp>(q, k, v, CausalMask{}, 0.125);
}
#else
auto user(const Queries& q, const Folded& k, const Keys<>& v) {
  return ring_attention<tp>(q, k, convert<Shard<key<seq>, Zigzag<tp>>>(v), CausalMask{}, 0.125);
}
#endif
