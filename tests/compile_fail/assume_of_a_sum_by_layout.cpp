// SPDX-License-Identifier: Apache-2.0
// The same for a whole layout.
#include "meshwise/tensor/assume.hpp"

#include "vocabulary.hpp"

// expect: because::a_claim_does_not_carry_out_the_sum_of_Partial<tp>, try_<reshard_<
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Partial<tp>>& z) { return assume<Layout<Grid>>(z); }
#else
auto user(const On<Rows, Partial<tp>>& z) { return reshard<Layout<Grid>>(z); }
#endif
