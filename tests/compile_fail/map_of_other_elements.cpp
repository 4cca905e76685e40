// SPDX-License-Identifier: Apache-2.0
// A function that takes something else than the elements.
#include "meshwise/tensor/elementwise.hpp"

#include "vocabulary.hpp"

// expect: because::function_does_not_take_the_elements, try_<take_one_element_and_return_one>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows>& x) {
  return map([](float a, float b) { return a + b; }, x);
}
#else
auto user(const On<Rows>& x) {
  return map([](float a) { return a + a; }, x);
}
#endif
