// SPDX-License-Identifier: Apache-2.0
// Every rank would add the whole value to its share.
#include "meshwise/tensor/accumulate.hpp"

#include "vocabulary.hpp"

// expect: because::Partial_cannot_meet_Replicate<tp>, try_<convert_first_operand_<Replicate<tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(On<Rows, Partial<tp>> z, const On<Rows>& x) { z += x; }
#else
auto user(On<Rows, Partial<tp>> z, const On<Rows>& x) {
  auto whole = convert<Replicate<tp>>(std::move(z));
  whole += x;
}
#endif
