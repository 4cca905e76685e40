// SPDX-License-Identifier: Apache-2.0
// One call, one algorithm.
#include <vector>

#include "meshwise/collective/all_gather.hpp"
#include "meshwise/schedule/direct.hpp"
#include "meshwise/schedule/ring.hpp"

using namespace meshwise;

// expect: because::two_algorithms_are_named<Ring, Direct>, try_<keep_one_of_them>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(Communicator& c, std::vector<int>& data) { all_gather<Ring, Direct>(c, data); }
#else
void user(Communicator& c, std::vector<int>& data) { all_gather<Ring>(c, data); }
#endif
