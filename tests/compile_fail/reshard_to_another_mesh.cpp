// SPDX-License-Identifier: Apache-2.0
// A plan is between layouts of one mesh.
#include "meshwise/tensor/reshard.hpp"

#include "vocabulary.hpp"

// expect: because::meshes_differ, try_<bring_both_to_one_mesh>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows>& x) { return reshard<Layout<Mesh<tp>, Shard<batch, tp>>>(x); }
#else
auto user(const On<Rows>& x) { return reshard<Layout<Grid, Shard<batch, tp>>>(x); }
#endif
