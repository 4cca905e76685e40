// SPDX-License-Identifier: Apache-2.0
// A soft-max over the keys of one rank is none over all keys.
#include "meshwise/parallel/context.hpp"

#include "vocabulary.hpp"

using Queries = On<Dims<seq, heads, head_dim>, Shard<seq, tp>>;
using Keys = On<Dims<key<seq>, kv, head_dim>, Shard<key<seq>, tp>>;

// expect: because::needs_the_whole_dim<key<seq>>, try_<convert_<Replicate<tp>>, or_<use_ring_attention>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const Queries& q, const Keys& k, const Keys& v) { return attend(q, k, v, CausalMask{}, 0.125); }
#else
auto user(const Queries& q, const Keys& k, const Keys& v) { return ring_attention<tp>(q, k, v, CausalMask{}, 0.125); }
#endif
