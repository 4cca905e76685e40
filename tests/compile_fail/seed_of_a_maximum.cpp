// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/backward.hpp"

#include "vocabulary.hpp"

// expect: because::Partial_with_this_reduction_has_no_gradient<tp>, try_<convert_<Replicate<tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Dims<>, Partial<tp, Max>>& top) { return gradient_seed(top); }
#else
auto user(const On<Dims<>, Partial<tp, Max>>& top) { return gradient_seed(convert<Replicate<tp>>(top)); }
#endif
