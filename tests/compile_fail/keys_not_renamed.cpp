// SPDX-License-Identifier: Apache-2.0
// Queries and keys of one name would be the same positions.
#include "meshwise/tensor/attend.hpp"

#include "vocabulary.hpp"

using Queries = On<Dims<seq, heads, head_dim>>;
using Keys = On<Dims<seq, kv, head_dim>>;

// expect: because::dim_not_in_the_tensor<key<seq>>, try_<rename_<seq, key<seq>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const Queries& q, const Keys& k, const Keys& v) { return attend(q, k, v, CausalMask{}, 0.125); }
#else
auto user(const Queries& q, const Keys& k, const Keys& v) {
  return attend(q, rename<seq, key<seq>>(k), rename<seq, key<seq>>(v), CausalMask{}, 0.125);
}
#endif
