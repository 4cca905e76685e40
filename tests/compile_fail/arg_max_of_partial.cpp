// SPDX-License-Identifier: Apache-2.0
// The largest sum need not stand where the largest part does.
#include "meshwise/tensor/arg_max.hpp"

#include "vocabulary.hpp"

// expect: because::nonlinear_function_of_Partial<tp>, try_<convert_<Replicate<tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Partial<tp>>& z) { return distributed_arg_max<hidden>(z); }
#else
auto user(const On<Rows, Partial<tp>>& z) { return distributed_arg_max<hidden>(convert<Replicate<tp>>(z)); }
#endif
