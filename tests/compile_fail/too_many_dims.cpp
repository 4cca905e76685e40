// SPDX-License-Identifier: Apache-2.0
// A tensor of thirteen dims.
#include "vocabulary.hpp"

// expect(g++): because::tensor_has_more_than_12_dims, try_<merge_dims_that_are_always_used_together>
// expect(clang++): call to deleted constructor
// note(clang++): because::tensor_has_more_than_12_dims, try_<merge_dims_that_are_always_used_together>
#ifdef MESHWISE_MUST_NOT_COMPILE
template <int>
struct one : dim {};
using Many = Dims<one<0>, one<1>, one<2>, one<3>, one<4>, one<5>, one<6>, one<7>, one<8>, one<9>, batch, seq, hidden>;
void user(const Grid& mesh) { On<Many> x(mesh, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}); }
#else
template <int>
struct one : dim {};
using Many = Dims<one<0>, one<1>, one<2>, one<3>, one<4>, one<5>, one<6>, one<7>, one<8>, one<9>, batch, hidden>;
void user(const Grid& mesh) { On<Many> x(mesh, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}); }
#endif
