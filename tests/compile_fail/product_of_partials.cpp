// SPDX-License-Identifier: Apache-2.0
// The product of sums is not the sum of products.
#include "meshwise/tensor/elementwise.hpp"

#include "vocabulary.hpp"

// expect: because::function_of_two_Partials_is_not_linear<tp>, try_<convert_both_operands_<Replicate<tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Partial<tp>>& y, const On<Rows, Partial<tp>>& z) { return y * z; }
#else
auto user(const On<Rows, Partial<tp>>& y, const On<Rows, Partial<tp>>& z) {
  return convert<Replicate<tp>>(y) * convert<Replicate<tp>>(z);
}
#endif
