// SPDX-License-Identifier: Apache-2.0
// Accumulating an owed sum into a value that owes nothing.
#include "meshwise/tensor/accumulate.hpp"

#include "vocabulary.hpp"

// expect: because::Partial_cannot_meet_Replicate<tp>, try_<convert_second_operand_<Replicate<tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(On<Rows>& a, const On<Rows, Partial<tp>>& z) { a += z; }
#else
void user(On<Rows>& a, const On<Rows, Partial<tp>>& z) { a += convert<Replicate<tp>>(z); }
#endif
