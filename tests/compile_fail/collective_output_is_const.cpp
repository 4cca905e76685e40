// SPDX-License-Identifier: Apache-2.0
// In place means that the input is written.
#include <vector>

#include "meshwise/collective/all_reduce.hpp"

using namespace meshwise;

// expect: because::the_output_is_const<const std::vector<int.*, try_<pass_an_output_that_may_be_written>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(Communicator& c, const std::vector<int>& data) { all_reduce(c, data); }
#else
void user(Communicator& c, const std::vector<int>& data, std::vector<int>& out) { all_reduce(c, data, out); }
#endif
