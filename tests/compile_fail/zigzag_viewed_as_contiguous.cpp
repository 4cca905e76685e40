// SPDX-License-Identifier: Apache-2.0
// The ranks hold other indices: taken for contiguous, tokens would change their places.
#include "meshwise/tensor/convert.hpp"

#include "vocabulary.hpp"

// expect: because::view_would_communicate<Shard<batch, tp>>, try_<use_convert_if_communication_is_meant>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Shard<batch, Zigzag<tp>>>& x) { return view_as<Shard<batch, tp>>(x); }
#else
auto user(const On<Rows, Shard<batch, Zigzag<tp>>>& x) { return view_as<Shard<batch, Zigzag<tp>>>(x); }
#endif
