// SPDX-License-Identifier: Apache-2.0
// A gradient that was summed already would be summed again.
#include "meshwise/parallel/zero.hpp"

#include "vocabulary.hpp"

using Model = Zero<Zero2<dp>, float, Grid>;

// expect: because::gradient_owes_no_sum<dp>, try_<use_it_as_it_is>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(Model::Gradients& g, const Model::Ticket<On<Rows>>& w, const On<Rows>& dw) { g.add(w, dw); }
#else
void user(Model::Gradients& g, const Model::Ticket<On<Rows>>& w, const On<Rows, Partial<dp>>& dw) { g.add(w, dw); }
#endif
