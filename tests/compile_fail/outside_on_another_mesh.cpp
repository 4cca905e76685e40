// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/inside.hpp"

#include "vocabulary.hpp"

// expect: because::meshes_differ, try_<take_the_mesh_with_this_axis_added>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const Grid& mesh, const On<Rows>& x) { return outside<Replicate<tp>>(mesh, inside<dp>(x)); }
#else
auto user(const Grid& mesh, const On<Rows>& x) { return outside<Replicate<tp>>(mesh, inside<tp>(x)); }
#endif
