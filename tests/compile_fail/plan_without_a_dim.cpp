// SPDX-License-Identifier: Apache-2.0
// The dims of a tensor include all that its layouts shard.
#include "meshwise/layout/plan.hpp"

#include "vocabulary.hpp"

// expect(g++): plan<Layout<Mesh<dp, tp>, Shard<batch, tp>>, Layout<Mesh<dp, tp>>, Dims<hidden>>
// expect(clang++): constraints not satisfied for variable template 'plan'
// note: DimsFor
#ifdef MESHWISE_MUST_NOT_COMPILE
double user() { return plan<Layout<Mesh<dp, tp>, Shard<batch, tp>>, Layout<Mesh<dp, tp>>, Dims<hidden>>.cost; }
#else
double user() { return plan<Layout<Mesh<dp, tp>, Shard<batch, tp>>, Layout<Mesh<dp, tp>>, Dims<batch, hidden>>.cost; }
#endif
