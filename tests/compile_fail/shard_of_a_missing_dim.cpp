// SPDX-License-Identifier: Apache-2.0
#include "vocabulary.hpp"

// expect(g++): because::dim_not_in_the_tensor<seq>, try_<name_a_dim_of_this_tensor>
// expect(clang++): call to deleted constructor
// note(clang++): because::dim_not_in_the_tensor<seq>, try_<name_a_dim_of_this_tensor>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(const Grid& mesh) { On<Rows, Shard<seq, tp>> x(mesh, {4, 8}); }
#else
void user(const Grid& mesh) { On<Rows, Shard<batch, tp>> x(mesh, {4, 8}); }
#endif
