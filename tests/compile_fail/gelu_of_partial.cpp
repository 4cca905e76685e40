// SPDX-License-Identifier: Apache-2.0
// The GELU of a sum is not the sum of the parts.
#include "meshwise/tensor/activation.hpp"

#include "vocabulary.hpp"

// expect: because::nonlinear_function_of_Partial<tp>, try_<convert_<Replicate<tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Partial<tp>>& z) { return gelu(z); }
#else
auto user(const On<Rows, Partial<tp>>& z) { return gelu(convert<Replicate<tp>>(z)); }
#endif
