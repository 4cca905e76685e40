// SPDX-License-Identifier: Apache-2.0
// A parameter that is not trained has no place for a gradient.
#include "meshwise/parallel/zero.hpp"

#include "vocabulary.hpp"

using Model = Zero<Zero3<dp>, float, Grid>;

// expect: because::parameter_is_frozen, try_<leave_its_gradient_out>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(Model::Gradients& g, const Model::FrozenTicket<On<Rows>>& w, const On<Rows, Partial<dp>>& dw) {
  g.add(w, dw);
}
#else
void user(Model::Gradients& g, const Model::Ticket<On<Rows>>& w, const On<Rows, Partial<dp>>& dw) { g.add(w, dw); }
#endif
