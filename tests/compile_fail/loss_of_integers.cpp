// SPDX-License-Identifier: Apache-2.0
// Logits are real numbers.
#include "meshwise/parallel/vocabulary.hpp"

#include "vocabulary.hpp"

// expect: because::function_of_real_numbers_on_integers<int>, try_<use_a_floating_point_element>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const Tensor<int, Rows, Layout<Grid>>& logits, const Ids& labels) {
  return cross_entropy<hidden>(logits, labels, 1.0);
}
#else
auto user(const On<Rows>& logits, const Ids& labels) { return cross_entropy<hidden>(logits, labels, 1.0); }
#endif
