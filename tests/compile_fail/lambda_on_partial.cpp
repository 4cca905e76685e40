// SPDX-License-Identifier: Apache-2.0
// A function of the user is taken for non-linear unless it says that it is not.
#include "meshwise/tensor/elementwise.hpp"

#include "vocabulary.hpp"

// expect: because::nonlinear_function_of_Partial<tp>
// expect: try_<wrap_it_in_linear_if_it_is, or_<convert_<Replicate<tp>>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Partial<tp>>& z) {
  return map([](float x) { return 2 * x; }, z);
}
#else
auto user(const On<Rows, Partial<tp>>& z) {
  return map(linear([](float x) { return 2 * x; }), z);
}
#endif
