// SPDX-License-Identifier: Apache-2.0
// An update by an owed gradient would differ between replicas.
#include "meshwise/train/adamw.hpp"

#include "vocabulary.hpp"

// expect: because::gradient_still_owes_a_sum<dp>, try_<convert_<Replicate<dp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(On<Rows>& w, const On<Rows, Partial<dp>>& dw, AdamWState<On<Rows>>& state) {
  adamw_step(w, dw, state, 1, {});
}
#else
void user(On<Rows>& w, const On<Rows, Partial<dp>>& dw, AdamWState<On<Rows>>& state) {
  adamw_step(w, convert<Replicate<dp>>(dw), state, 1, {});
}
#endif
