// SPDX-License-Identifier: Apache-2.0
// Every rank has whole sequences already.
#include "meshwise/parallel/ulysses.hpp"

#include "vocabulary.hpp"

template <class... Ps>
using Queries = On<Dims<seq, heads, head_dim>, Ps...>;
using Keys = On<Dims<key<seq>, kv, head_dim>, Shard<key<seq>, tp>>;

// expect: because::axis_does_not_cut_the_dim<tp, seq>, try_<convert_first_operand_<Shard<seq, tp>>, or_<use_attend>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const Queries<>& q, const Keys& k, const Keys& v) {
  return ulysses_attention<tp>(q, k, v, CausalMask{}, 0.125);
}
#else
auto user(const Queries<>& q, const Keys& k, const Keys& v) {
  return ulysses_attention<tp>(convert<Shard<seq, tp>>(q), k, v, CausalMask{}, 0.125);
}
#endif
