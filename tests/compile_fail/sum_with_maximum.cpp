// SPDX-License-Identifier: Apache-2.0
// Two owed reductions that are not the same one.
#include "meshwise/tensor/elementwise.hpp"

#include "vocabulary.hpp"

// expect: because::Partials_have_different_reductions<tp>, try_<convert_both_operands_<Replicate<tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Partial<tp>>& y, const On<Rows, Partial<tp, Max>>& z) { return y + z; }
#else
auto user(const On<Rows, Partial<tp>>& y, const On<Rows, Partial<tp, Max>>& z) {
  return convert<Replicate<tp>>(y) + convert<Replicate<tp>>(z);
}
#endif
