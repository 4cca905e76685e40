// SPDX-License-Identifier: Apache-2.0
// With fewer extents than dims the others would be 0, and the tensor empty.
#include "vocabulary.hpp"

// expect(g++): give_one_extent_for_each_dim
// expect(clang++): call to deleted constructor
// note(clang++): give_one_extent_for_each_dim
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(const Grid& mesh) { On<Rows> x(mesh, {4}); }
#else
void user(const Grid& mesh) { On<Rows> x(mesh, {4, 8}); }
#endif
