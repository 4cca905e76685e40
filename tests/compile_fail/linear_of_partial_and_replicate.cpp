// SPDX-License-Identifier: Apache-2.0
// Linear in both together: every rank would add its share of what is whole.
#include "meshwise/tensor/elementwise.hpp"

#include "vocabulary.hpp"

// expect: because::Partial_cannot_meet_Replicate<tp>, try_<convert_first_operand_<Replicate<tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Partial<tp>>& z, const On<Rows>& x) {
  return zip(linear([](float a, float b) { return a - 2 * b; }), z, x);
}
#else
auto user(const On<Rows, Partial<tp>>& z, const On<Rows>& x) {
  return zip(linear([](float a, float b) { return a - 2 * b; }), convert<Replicate<tp>>(z), x);
}
#endif
