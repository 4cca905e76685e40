// SPDX-License-Identifier: Apache-2.0
// A Partial assigned where a Shard is expected.
#include "meshwise/tensor/convert.hpp"

#include "vocabulary.hpp"

// expect(g++): use of deleted function
// expect(g++): Try = try_<convert_<Shard<batch, tp>>>
// expect(clang++): invokes a deleted function
// expect(clang++): Partial<tp>
// note(clang++): try_<convert_<Shard<batch, tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(On<Rows, Shard<batch, tp>>& y, const On<Rows, Partial<tp>>& z) { y = z; }
#else
void user(On<Rows, Shard<batch, tp>>& y, const On<Rows, Partial<tp>>& z) { y = convert<Shard<batch, tp>>(z); }
#endif
