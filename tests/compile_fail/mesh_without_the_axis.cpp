// SPDX-License-Identifier: Apache-2.0
#include "meshwise/mesh/mesh.hpp"

#include "vocabulary.hpp"

// expect: because::axis_not_in_the_mesh<cp>, try_<name_an_axis_of_this_mesh>, Mesh<dp, tp>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const Grid& mesh) { return mesh.size<cp>(); }
#else
auto user(const Grid& mesh) { return mesh.size<dp>(); }
#endif
