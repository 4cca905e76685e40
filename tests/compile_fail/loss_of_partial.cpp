// SPDX-License-Identifier: Apache-2.0
// Logits that are still a sum.
#include "meshwise/parallel/vocabulary.hpp"

#include "vocabulary.hpp"

// expect: because::nonlinear_function_of_Partial<tp>, try_<convert_<Replicate<tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Partial<tp>>& z, const Ids& labels) { return cross_entropy<hidden>(z, labels, 1.0); }
#else
auto user(const On<Rows, Partial<tp>>& z, const Ids& labels) {
  return cross_entropy<hidden>(convert<Replicate<tp>>(z), labels, 1.0);
}
#endif
