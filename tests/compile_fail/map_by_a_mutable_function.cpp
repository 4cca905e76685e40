// SPDX-License-Identifier: Apache-2.0
// What changes with every call depends on their order, which layouts decide.
#include "meshwise/tensor/elementwise.hpp"

#include "vocabulary.hpp"

// expect: because::function_is_mutable, try_<capture_by_reference_instead_of_mutable>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows>& x) {
  return map([n = 0](float a) mutable { return a + static_cast<float>(n++); }, x);
}
#else
auto user(const On<Rows>& x) {
  int calls = 0;
  return map([&calls](float a) { return ++calls, a; }, x);
}
#endif
