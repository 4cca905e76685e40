// SPDX-License-Identifier: Apache-2.0
// The second operand is the one that is repeated.
#include "meshwise/tensor/elementwise.hpp"

#include "vocabulary.hpp"

// expect: because::dims_differ, try_<put_the_operand_with_more_dims_first>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Vector>& bias, const On<Rows>& x) { return bias + x; }
#else
auto user(const On<Vector>& bias, const On<Rows>& x) { return x + bias; }
#endif
