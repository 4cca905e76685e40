// SPDX-License-Identifier: Apache-2.0
// The gradient of one row is no gradient of some rows.
#include "meshwise/tensor/take.hpp"

#include "vocabulary.hpp"

// expect: because::dims_differ, try_<give_the_gradient_the_dims_of_the_value>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows>& x, const On<Vector>& dy) { return take_backward<batch>(dy, x, Range{2, 1}); }
#else
auto user(const On<Rows>& x, const On<Vector>& dy) { return take_backward<batch>(dy, x, 2); }
#endif
