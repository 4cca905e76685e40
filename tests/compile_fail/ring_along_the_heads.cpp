// SPDX-License-Identifier: Apache-2.0
// The axis cuts the heads: its ranks have whole sequences, and nothing needs to go round.
#include "meshwise/parallel/context.hpp"

#include "vocabulary.hpp"

using Queries = On<Dims<seq, heads, head_dim>, Shard<heads, tp>>;
using Keys = On<Dims<key<seq>, kv, head_dim>, Shard<kv, tp>>;

// expect: because::axis_does_not_cut_the_dim<tp, seq>, try_<convert_first_operand_<Shard<seq, tp>>, or_<use_attend>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const Queries& q, const Keys& k, const Keys& v) { return ring_attention<tp>(q, k, v, CausalMask{}, 0.125); }
#else
auto user(const Queries& q, const Keys& k, const Keys& v) { return attend(q, k, v, CausalMask{}, 0.125); }
#endif
