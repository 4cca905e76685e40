// SPDX-License-Identifier: Apache-2.0
// The prefix of a scan has another number of contributions on every rank.
#include <vector>

#include "meshwise/collective/scan.hpp"

using namespace meshwise;

// expect: because::a_scan_has_no_average, try_<use_Sum_and_divide_by_the_number_of_ranks_so_far>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(Communicator& c, std::vector<float>& data) { inclusive_scan<Average>(c, data); }
#else
void user(Communicator& c, std::vector<float>& data) { inclusive_scan<Sum>(c, data); }
#endif
