// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/layer_norm.hpp"

#include "vocabulary.hpp"

// expect: because::dims_differ, try_<give_the_parameters_the_last_dim_only>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Dims<batch, seq, hidden>>& x, const On<Dims<seq, hidden>>& matrix) {
  return layer_norm(x, matrix, matrix);
}
#else
auto user(const On<Dims<batch, seq, hidden>>& x, const On<Vector>& gain) { return layer_norm(x, gain, gain); }
#endif
