// SPDX-License-Identifier: Apache-2.0
// A factor may be negative: it does not commute with a maximum.
#include "meshwise/tensor/elementwise.hpp"

#include "vocabulary.hpp"

// expect: because::nonlinear_function_of_Partial<tp>, try_<convert_<Replicate<tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Partial<tp, Max>>& z) { return z * 0.5; }
#else
auto user(const On<Rows, Partial<tp, Max>>& z) { return convert<Replicate<tp>>(z) * 0.5; }
#endif
