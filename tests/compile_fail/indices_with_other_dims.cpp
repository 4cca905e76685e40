// SPDX-License-Identifier: Apache-2.0
// One index per row.
#include "meshwise/tensor/lookup.hpp"

#include "vocabulary.hpp"

// expect: because::dims_differ, try_<give_the_indices_the_other_dims>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Dims<batch, seq, hidden>>& x, const Ids& one_per_sequence) {
  return pick<hidden>(x, one_per_sequence);
}
#else
auto user(const On<Dims<batch, seq, hidden>>& x, const Tensor<int, Dims<batch, seq>, Layout<Grid>>& one_per_row) {
  return pick<hidden>(x, one_per_row);
}
#endif
