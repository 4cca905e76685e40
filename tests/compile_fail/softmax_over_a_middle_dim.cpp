// SPDX-License-Identifier: Apache-2.0
// Rows are contiguous.
#include "meshwise/tensor/contract.hpp"
#include "meshwise/tensor/softmax.hpp"

#include "vocabulary.hpp"

// expect: because::dim_is_not_last<seq>, try_<put_it_last_in_the_dims>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Dims<seq, hidden>>& x, const On<Dims<hidden, head_dim>>& w) {
  return softmax<seq>(contract<hidden>(x, w));
}
#else
auto user(const On<Dims<seq, hidden>>& x, const On<Dims<hidden, head_dim>>& w) {
  return softmax<seq>(contract<hidden>(w, x));
}
#endif
