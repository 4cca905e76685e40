// SPDX-License-Identifier: Apache-2.0
// Positions of a folded sequence are no range: masks and rotations that take them for one are wrong.
#include "meshwise/tensor/tensor.hpp"

#include "vocabulary.hpp"

// expect: because::dim_is_not_contiguous<batch>, try_<use_positions>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Shard<batch, Zigzag<tp>>>& x) { return x.range<batch>().begin; }
#else
auto user(const On<Rows, Shard<batch, Zigzag<tp>>>& x) { return x.positions<batch>().at(0); }
#endif
