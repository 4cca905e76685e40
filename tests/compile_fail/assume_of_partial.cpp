// SPDX-License-Identifier: Apache-2.0
// Nothing would have added the parts up.
#include "meshwise/tensor/assume.hpp"

#include "vocabulary.hpp"

// expect: because::a_claim_does_not_carry_out_the_sum_of_Partial<tp>, try_<convert_<Replicate<tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Partial<tp>>& z) { return assume<Replicate<tp>>(z); }
#else
auto user(const On<Rows, Partial<tp>>& z) { return convert<Replicate<tp>>(z); }
#endif
