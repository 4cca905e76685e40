// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/convert.hpp"

#include "vocabulary.hpp"

// expect: because::axis_not_in_the_mesh<cp>, try_<name_an_axis_of_this_mesh>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows>& x) { return convert<Shard<batch, cp>>(x); }
#else
auto user(const On<Rows>& x) { return convert<Shard<batch, dp>>(x); }
#endif
