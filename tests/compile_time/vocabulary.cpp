// SPDX-License-Identifier: Apache-2.0
// Axes, dims, placements, layouts and the names of meshes: what a header that only names types includes.
// budget: 150 ms
#include "meshwise/layout/layout.hpp"

using namespace meshwise;

using Grid = Mesh<dp, tp>;
using Rows = Layout<Grid, Shard<batch, dp>, Shard<hidden, tp>>;
using Sums = Layout<Grid, Shard<batch, dp>, Partial<tp>>;
