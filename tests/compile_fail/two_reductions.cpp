// SPDX-License-Identifier: Apache-2.0
// A maximum of sums is not the sum of the maxima.
#include "vocabulary.hpp"

// expect: because::Partials_have_different_reductions<tp>, try_<reduce_one_of_them_first>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(const Grid& mesh) { On<Rows, Partial<dp>, Partial<tp, Max>> x(mesh, {4, 8}); }
#else
void user(const Grid& mesh) { On<Rows, Partial<tp, Max>> x(mesh, {4, 8}); }
#endif
