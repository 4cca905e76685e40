// SPDX-License-Identifier: Apache-2.0
#include "meshwise/layout/dual.hpp"

#include "vocabulary.hpp"

// expect: because::Partial_with_this_reduction_has_no_gradient<tp>, try_<convert_<Replicate<tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(const Grid& mesh) { Tensor<float, Rows, Owed<Layout<Grid, Partial<tp, Max>>>> gradient(mesh, {4, 8}); }
#else
void user(const Grid& mesh) { Tensor<float, Rows, Owed<Layout<Grid>>> gradient(mesh, {4, 8}); }
#endif
