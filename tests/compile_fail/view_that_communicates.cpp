// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/convert.hpp"

#include "vocabulary.hpp"

// expect: because::view_would_communicate<Replicate<dp>>, try_<use_convert_if_communication_is_meant>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Shard<batch, dp>>& x) { return view_as<Replicate<dp>>(x); }
#else
auto user(const On<Rows, Shard<batch, dp>>& x) { return convert<Replicate<dp>>(x); }
#endif
