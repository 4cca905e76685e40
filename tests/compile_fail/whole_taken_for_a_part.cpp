// SPDX-License-Identifier: Apache-2.0
// A loss over a split vocabulary that takes whole logits for its part is off by the logarithm of the number of ranks.
#include "meshwise/tensor/convert.hpp"

#include "vocabulary.hpp"

// expect(g++): use of deleted function
// expect(g++): Try = try_<convert_<Shard<hidden, tp>>>
// expect(clang++): invokes a deleted function
// expect(clang++): Shard<hidden, tp>
// note(clang++): try_<convert_<Shard<hidden, tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
On<Rows, Shard<hidden, tp>> user(const On<Rows>& logits) { return logits; }
#else
On<Rows, Shard<hidden, tp>> user(const On<Rows>& logits) { return convert<Shard<hidden, tp>>(logits); }
#endif
