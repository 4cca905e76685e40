// SPDX-License-Identifier: Apache-2.0
// A function of the user is taken for non-linear unless it says that it is not.
#include "meshwise/tensor/elementwise.hpp"

#include "vocabulary.hpp"

// expect: because::nonlinear_function_of_Partial<tp>, try_<wrap_it_in_linear_if_it_is, or_<convert_both_operands_<Replicate<tp>>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Partial<tp>>& y, const On<Rows, Partial<tp>>& z) {
  return zip([](float a, float b) { return a - 2 * b; }, y, z);
}
#else
auto user(const On<Rows, Partial<tp>>& y, const On<Rows, Partial<tp>>& z) {
  return zip(linear([](float a, float b) { return a - 2 * b; }), y, z);
}
#endif
