// SPDX-License-Identifier: Apache-2.0
// Whose gradient is it?
#include "meshwise/tensor/backward.hpp"

#include "vocabulary.hpp"

// expect: because::Partial_with_this_reduction_has_no_gradient<tp>, try_<convert_<Replicate<tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows>& dy) { return backward_to<On<Rows, Partial<tp, Max>>>(dy); }
#else
auto user(const On<Rows>& dy) { return backward_to<On<Rows>>(dy); }
#endif
