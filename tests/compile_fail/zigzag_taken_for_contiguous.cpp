// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/convert.hpp"

#include "vocabulary.hpp"

// expect: Zigzag<tp>
// expect(g++): try_<convert_<Shard<batch, tp>>>
// note(clang++): try_<convert_<Shard<batch, tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
On<Rows, Shard<batch, tp>> user(const On<Rows, Shard<batch, Zigzag<tp>>>& x) { return x; }
#else
On<Rows, Shard<batch, tp>> user(const On<Rows, Shard<batch, Zigzag<tp>>>& x) { return convert<Shard<batch, tp>>(x); }
#endif
