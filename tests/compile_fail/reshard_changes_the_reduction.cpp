// SPDX-License-Identifier: Apache-2.0
// A sum of parts says nothing about their maximum.
#include "meshwise/tensor/reshard.hpp"

#include "vocabulary.hpp"

// expect: because::reduction_of_a_Partial_cannot_change<tp, Partial<tp>, Partial<tp, Max>>, try_<convert_<Replicate<tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Partial<tp>>& x) { return reshard<Layout<Grid, Partial<tp, Max>>>(x); }
#else
auto user(const On<Rows, Partial<tp>>& x) { return reshard<Layout<Grid, Partial<tp, Max>>>(convert<Replicate<tp>>(x)); }
#endif
