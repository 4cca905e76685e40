// SPDX-License-Identifier: Apache-2.0
// It says that it is linear in the first one; the second one is the sum.
#include "meshwise/tensor/elementwise.hpp"

#include "vocabulary.hpp"

// expect: because::nonlinear_function_of_Partial<tp>, try_<convert_second_operand_<Replicate<tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows>& x, const On<Rows, Partial<tp>>& z) {
  return zip(linear_in_first([](float a, float b) { return a * b * b; }), x, z);
}
#else
auto user(const On<Rows>& x, const On<Rows, Partial<tp>>& z) {
  return zip(linear_in_first([](float a, float b) { return a * b * b; }), x, convert<Replicate<tp>>(z));
}
#endif
