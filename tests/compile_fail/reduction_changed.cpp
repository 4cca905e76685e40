// SPDX-License-Identifier: Apache-2.0
// A sum that is owed cannot become a maximum that is owed.
#include "meshwise/tensor/convert.hpp"

#include "vocabulary.hpp"

// expect: because::reduction_of_a_Partial_cannot_change<tp, Partial<tp>, Partial<tp, Max>>
// expect: try_<convert_<Replicate<tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Partial<tp>>& z) { return convert<Partial<tp, Max>>(z); }
#else
auto user(const On<Rows, Partial<tp>>& z) { return convert<Replicate<tp>, Partial<tp, Max>>(z); }
#endif
