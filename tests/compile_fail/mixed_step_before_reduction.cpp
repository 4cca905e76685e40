// SPDX-License-Identifier: Apache-2.0
// An update by an owed gradient would differ between replicas, whatever the element of the gradient.
#include "meshwise/train/mixed_precision.hpp"

#include "vocabulary.hpp"

using Narrow = Tensor<bf16, Rows, Layout<Grid>>;

// expect: because::gradient_still_owes_a_sum<dp>, try_<convert_<Replicate<dp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(Narrow& w, const On<Rows, Partial<dp>>& dw, MasterState<Narrow>& state) { adamw_step(w, dw, state, 1, {}); }
#else
void user(Narrow& w, const On<Rows, Partial<dp>>& dw, MasterState<Narrow>& state) {
  adamw_step(w, convert<Replicate<dp>>(dw), state, 1, {});
}
#endif
