// SPDX-License-Identifier: Apache-2.0
// Bits of floating-point numbers are not combined.
#include <vector>

#include "meshwise/collective/reduce_scatter.hpp"
#include "meshwise/core/logic.hpp"

using namespace meshwise;

// expect: because::reduction_is_not_defined_on_this_element<BitAnd, float>, try_<use_an_element_that_the_reduction_is_defined_on>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(Communicator& c, std::vector<float>& in, std::vector<float>& out) {
  return start_reduce_scatter<BitAnd>(c, in, out);
}
#else
auto user(Communicator& c, std::vector<unsigned>& in, std::vector<unsigned>& out) {
  return start_reduce_scatter<BitAnd>(c, in, out);
}
#endif
