// SPDX-License-Identifier: Apache-2.0
// Whether a sum overflows is known after it was taken.
#include "meshwise/train/all_finite.hpp"

#include "vocabulary.hpp"

// expect: because::nonlinear_function_of_Partial<tp>, try_<convert_<Replicate<tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(AllFinite<Grid>& all, const On<Rows, Partial<tp>>& z) { all.add(z); }
#else
void user(AllFinite<Grid>& all, const On<Rows, Partial<tp>>& z) { all.add(convert<Replicate<tp>>(z)); }
#endif
