// SPDX-License-Identifier: Apache-2.0
// A shard joins at the minor end, where no axis can be Counted.
#include "meshwise/layout/transition.hpp"
#include "meshwise/tensor/convert.hpp"

#include "vocabulary.hpp"

// expect: because::counted_axis_is_not_major_most<tp>, try_<list_the_counted_axis_first_in_its_Shard>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Shard<batch, dp>>& x) { return convert<Shard<batch, Counted<tp>>>(x); }
#else
auto user(const On<Rows, Shard<batch, dp>>& x) { return convert<Shard<batch, Zigzag<tp>>>(x); }
#endif
