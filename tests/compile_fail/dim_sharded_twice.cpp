// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/generate.hpp"

#include "vocabulary.hpp"

// expect: because::dim_repeated<batch>, try_<list_all_axes_of_a_dim_in_one_Shard>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const Grid& mesh) {
  return generate<On<Rows, Shard<batch, tp>, Shard<batch, dp>>>(mesh, {4, 8}, [](const auto&) { return 1.0F; });
}
#else
auto user(const Grid& mesh) {
  return generate<On<Rows, Shard<batch, tp, dp>>>(mesh, {4, 8}, [](const auto&) { return 1.0F; });
}
#endif
