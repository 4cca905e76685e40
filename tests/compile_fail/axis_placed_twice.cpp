// SPDX-License-Identifier: Apache-2.0
#include "vocabulary.hpp"

// expect: because::axis_placed_twice<tp>, try_<list_each_axis_once>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(const Grid& mesh) { On<Rows, Shard<batch, tp>, Shard<hidden, tp>> x(mesh, {4, 8}); }
#else
void user(const Grid& mesh) { On<Rows, Shard<batch, dp>, Shard<hidden, tp>> x(mesh, {4, 8}); }
#endif
