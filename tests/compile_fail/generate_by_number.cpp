// SPDX-License-Identifier: Apache-2.0
// Elements are a function of the whole index.
#include "meshwise/tensor/generate.hpp"

#include "vocabulary.hpp"

// expect: because::function_does_not_take_the_index, try_<take_an_Index_and_return_an_element>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const Grid& mesh) {
  return generate<On<Rows>>(mesh, {4, 8}, [](int i) { return i; });
}
#else
auto user(const Grid& mesh) {
  return generate<On<Rows>>(mesh, {4, 8}, [](const Index<Rows>& i) { return i.linear; });
}
#endif
