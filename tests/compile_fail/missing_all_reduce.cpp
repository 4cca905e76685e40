// SPDX-License-Identifier: Apache-2.0
// A Partial returned where a whole value is expected.
#include "meshwise/tensor/convert.hpp"

#include "vocabulary.hpp"

// expect(g++): use of deleted function
// expect(g++): Try = try_<convert_<Replicate<tp>>>
// expect(clang++): invokes a deleted function
// expect(clang++): Partial<tp>
// note(clang++): try_<convert_<Replicate<tp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
On<Rows> user(const On<Rows, Partial<tp>>& z) { return z; }
#else
On<Rows> user(const On<Rows, Partial<tp>>& z) { return convert<Replicate<tp>>(z); }
#endif
