// SPDX-License-Identifier: Apache-2.0
// A sum over a dim of which one operand has a part only.
#include "meshwise/tensor/contract.hpp"

#include "vocabulary.hpp"

// expect: because::contraction_sharded_on_one_side<hidden>, try_<convert_first_operand_<Shard<hidden, tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows>& x, const On<Weight, Shard<hidden, tp>>& w) { return contract<hidden>(x, w); }
#else
auto user(const On<Rows>& x, const On<Weight, Shard<hidden, tp>>& w) {
  return contract<hidden>(view_as<Shard<hidden, tp>>(x), w);
}
#endif
