// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/elementwise.hpp"

#include "vocabulary.hpp"

// expect: because::dims_differ, try_<give_both_the_same_dims_in_the_same_order>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows>& x, const On<Dims<hidden, batch>>& by_column) { return x + by_column; }
#else
auto user(const On<Rows>& x, const On<Rows>& by_row) { return x + by_row; }
#endif
