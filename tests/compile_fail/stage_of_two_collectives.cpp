// SPDX-License-Identifier: Apache-2.0
// Gradients that are owed over both axes and used in parts of one: a reduce_scatter and an all_reduce at once.
#include "meshwise/parallel/zero.hpp"

#include "vocabulary.hpp"

struct Hasty : HybridZero3<dp, tp> {
  using gradients = Layout<Grid, Partial<dp>, Partial<tp>>;
};

// expect(g++): template constraint failure for
// expect(clang++): constraints not satisfied for class template 'Zero'
// note: OneCollective<
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(Zero<Hasty, float, Grid>& zero) { zero.finish(); }
#else
void user(Zero<HybridZero3<dp, tp>, float, Grid>& zero) { zero.finish(); }
#endif
