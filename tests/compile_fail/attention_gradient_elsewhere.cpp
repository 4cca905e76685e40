// SPDX-License-Identifier: Apache-2.0
// A gradient of other positions than the result had.
#include "meshwise/parallel/context.hpp"

#include "vocabulary.hpp"

template <class... Ps>
using Queries = On<Dims<seq, heads, head_dim>, Ps...>;
using Folded = Queries<Shard<seq, Zigzag<tp>>>;
using Keys = On<Dims<key<seq>, kv, head_dim>, Shard<key<seq>, Zigzag<tp>>>;

// expect: because::layouts_differ, try_<convert_<Shard<seq, Zigzag<tp>>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const Queries<>& dout, const Folded& q, const Keys& k) {
  const auto saved = ring_attention<tp>(q, k, k, CausalMask{}, 0.125);
  return ring_attention_backward<tp>(dout, q, k, k, saved, CausalMask{}, 0.125);
}
#else
auto user(const Queries<>& dout, const Folded& q, const Keys& k) {
  const auto saved = ring_attention<tp>(q, k, k, CausalMask{}, 0.125);
  return ring_attention_backward<tp>(convert<Shard<seq, Zigzag<tp>>>(dout), q, k, k, saved, CausalMask{}, 0.125);
}
#endif
