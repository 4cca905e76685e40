// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/elementwise.hpp"

#include "vocabulary.hpp"

// expect: because::dims_differ, try_<give_both_the_same_dims_in_the_same_order>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows>& x, const On<Dims<hidden, batch>>& y) { return x + y; }
#else
auto user(const On<Rows>& x, const On<Rows>& z) { return x + z; }
#endif
