// SPDX-License-Identifier: Apache-2.0
// The function of a zip takes an element of each.
#include "meshwise/tensor/elementwise.hpp"

#include "vocabulary.hpp"

// expect: because::function_does_not_take_the_elements, try_<take_two_elements_and_return_one>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows>& x) {
  return zip([](float a) { return a; }, x, x);
}
#else
auto user(const On<Rows>& x) {
  return zip([](float a, float b) { return a - b; }, x, x);
}
#endif
