// SPDX-License-Identifier: Apache-2.0
// The largest sums need not stand where the largest parts do.
#include "meshwise/tensor/top_k.hpp"

#include "vocabulary.hpp"

// expect: because::nonlinear_function_of_Partial<tp>, try_<convert_<Replicate<tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Partial<tp>>& z) { return top_k<hidden>(z, 5).values; }
#else
auto user(const On<Rows, Partial<tp>>& z) { return top_k<hidden>(convert<Replicate<tp>>(z), 5).values; }
#endif
