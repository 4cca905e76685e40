// SPDX-License-Identifier: Apache-2.0
// The norm of a sum is not made of the norms of its parts.
#include "meshwise/tensor/norm.hpp"

#include "vocabulary.hpp"

// expect: because::nonlinear_function_of_Partial<tp>, try_<convert_<Replicate<tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
double user(const On<Rows, Partial<tp>>& z) { return norm(z); }
#else
double user(const On<Rows, Partial<tp>>& z) { return norm(convert<Replicate<tp>>(z)); }
#endif
