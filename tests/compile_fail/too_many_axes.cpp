// SPDX-License-Identifier: Apache-2.0
#include "vocabulary.hpp"

// expect: because::mesh_has_more_than_8_axes, try_<merge_axes_that_are_always_used_together>
template <int i>
struct numbered : axis {};
using Eight = Mesh<numbered<1>, numbered<2>, numbered<3>, numbered<4>, numbered<5>, numbered<6>, numbered<7>, dp>;
using Nine = Mesh<numbered<1>, numbered<2>, numbered<3>, numbered<4>, numbered<5>, numbered<6>, numbered<7>, dp, tp>;
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(const Nine& mesh) { Tensor<float, Rows, Layout<Nine>> x(mesh, {4, 8}); }
#else
void user(const Eight& mesh) { Tensor<float, Rows, Layout<Eight>> x(mesh, {4, 8}); }
#endif
