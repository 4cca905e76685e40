// SPDX-License-Identifier: Apache-2.0
#include "meshwise/layout/plan.hpp"

#include "vocabulary.hpp"

// expect(g++): plan<Layout<Mesh<dp, tp>>, Layout<Mesh<tp, dp>, Shard<batch, tp>>>
// expect(clang++): constraints not satisfied for variable template 'plan'
// note: OnTheMeshOf
#ifdef MESHWISE_MUST_NOT_COMPILE
double user() { return plan<Layout<Mesh<dp, tp>>, Layout<Mesh<tp, dp>, Shard<batch, tp>>>.cost; }
#else
double user() { return plan<Layout<Mesh<dp, tp>>, Layout<Mesh<dp, tp>, Shard<batch, tp>>>.cost; }
#endif
