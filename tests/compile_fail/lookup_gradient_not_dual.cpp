// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/backward.hpp"
#include "meshwise/tensor/lookup.hpp"

#include "vocabulary.hpp"

// expect: because::gradient_is_not_in_the_dual_of_the_value, try_<backward_to_<Tensor<float, Dims<batch, hidden>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Dims<vocab, hidden>, Shard<vocab, tp>>& table, const Ids& ids,
          const On<Rows, Shard<batch, tp>>& dy) {
  return lookup_backward<vocab>(dy, table, ids);
}
#else
auto user(const On<Dims<vocab, hidden>, Shard<vocab, tp>>& table, const Ids& ids,
          const On<Rows, Shard<batch, tp>>& dy) {
  return lookup_backward<vocab>(backward_to<decltype(lookup<vocab>(table, ids))>(dy), table, ids);
}
#endif
