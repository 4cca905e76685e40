// SPDX-License-Identifier: Apache-2.0
// Every rank would add the bias: the sum would have it once per rank.
#include "meshwise/tensor/elementwise.hpp"

#include "vocabulary.hpp"

// expect: because::Partial_cannot_meet_Replicate<tp>, try_<convert_first_operand_<Replicate<tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Partial<tp>>& z, const On<Vector>& bias) { return z + bias; }
#else
auto user(const On<Rows, Partial<tp>>& z, const On<Vector>& bias) { return convert<Replicate<tp>>(z) + bias; }
#endif
