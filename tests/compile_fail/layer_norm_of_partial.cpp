// SPDX-License-Identifier: Apache-2.0
// Normalising the parts is not normalising their sum.
#include "meshwise/tensor/layer_norm.hpp"

#include "vocabulary.hpp"

// expect: because::nonlinear_function_of_Partial<tp>, try_<convert_<Replicate<tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Partial<tp>>& z, const On<Vector>& gain, const On<Vector>& bias) {
  return layer_norm(z, gain, bias);
}
#else
auto user(const On<Rows, Partial<tp>>& z, const On<Vector>& gain, const On<Vector>& bias) {
  return layer_norm(convert<Replicate<tp>>(z), gain, bias);
}
#endif
