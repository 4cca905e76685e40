// SPDX-License-Identifier: Apache-2.0
// A group is made of axes that the mesh has.
#include "vocabulary.hpp"

// expect: because::axis_not_in_the_mesh<cp>, try_<name_an_axis_of_this_mesh>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto& user(const Grid& mesh) { return mesh.along<tp, cp>(); }
#else
auto& user(const Grid& mesh) { return mesh.along<tp, dp>(); }
#endif
