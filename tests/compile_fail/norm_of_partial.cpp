// SPDX-License-Identifier: Apache-2.0
// The norm of a sum needs the sum.
#include "meshwise/train/global_norm.hpp"

#include "vocabulary.hpp"

// expect: because::nonlinear_function_of_Partial<tp>, try_<convert_<Replicate<tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(GlobalNorm<Grid>& norm, const On<Rows, Partial<tp>>& z) { norm.add(z); }
#else
void user(GlobalNorm<Grid>& norm, const On<Rows, Partial<tp>>& z) { norm.add(convert<Replicate<tp>>(z)); }
#endif
