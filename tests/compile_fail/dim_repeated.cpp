// SPDX-License-Identifier: Apache-2.0
#include "vocabulary.hpp"

// expect(g++): because::dim_repeated<seq>, try_<rename_one_of_them_with_key>
// expect(clang++): call to deleted constructor
// note(clang++): because::dim_repeated<seq>, try_<rename_one_of_them_with_key>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(const Grid& mesh) { On<Dims<seq, seq>> scores(mesh, {4, 4}); }
#else
void user(const Grid& mesh) { On<Dims<seq, key<seq>>> scores(mesh, {4, 4}); }
#endif
