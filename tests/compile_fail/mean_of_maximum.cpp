// SPDX-License-Identifier: Apache-2.0
// The mean of values that are owed as maxima needs the maxima.
#include "meshwise/tensor/mean.hpp"

#include "vocabulary.hpp"

// expect: because::nonlinear_function_of_Partial<tp>, try_<convert_<Replicate<tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Partial<tp, Max>>& z) { return mean<batch>(z); }
#else
auto user(const On<Rows, Partial<tp, Max>>& z) { return mean<batch>(convert<Replicate<tp>>(z)); }
#endif
