// SPDX-License-Identifier: Apache-2.0
// Ranges without decay are of a vector that holds many parameters; a matrix decays as a whole.
#include "meshwise/train/weight_decay.hpp"

#include "vocabulary.hpp"

// expect: because::parameter_is_not_flat, try_<use_options_for>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(On<Rows>& w, const On<Rows>& dw, AdamWState<On<Rows>>& state, std::span<const Range> vectors) {
  adamw_step(w, dw, state, 1, {}, 1.0, vectors);
}
#else
void user(On<Rows>& w, const On<Rows>& dw, AdamWState<On<Rows>>& state) {
  adamw_step(w, dw, state, 1, options_for<On<Rows>>({}));
}
#endif
