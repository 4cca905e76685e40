// SPDX-License-Identifier: Apache-2.0
// Only the data knows how many indices the parts of a Counted dim have.
#include <vector>

#include "meshwise/tensor/convert.hpp"

#include "vocabulary.hpp"

// expect: because::sizes_of_a_Counted_dim_are_unknown<batch>, try_<pass_the_counts_of_its_parts>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows>& x, const std::vector<std::size_t>&) { return convert<Shard<batch, Counted<tp>>>(x); }
#else
auto user(const On<Rows>& x, const std::vector<std::size_t>& counts) {
  return convert<Shard<batch, Counted<tp>>>(x, counts);
}
#endif
