// SPDX-License-Identifier: Apache-2.0
// Counts are of a whole dim: what another axis has left has counts of its own on every rank.
#include "vocabulary.hpp"

// expect: because::counted_axis_is_not_major_most<tp>, try_<list_the_counted_axis_first_in_its_Shard>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(const Grid& mesh) { On<Rows, Shard<batch, dp, Counted<tp>>> x(mesh, {4, 8}); }
#else
using Held = On<Rows, Shard<batch, Counted<tp>, dp>>;
static_assert(AnyLayout<Held::layout>);
#endif
