// SPDX-License-Identifier: Apache-2.0
// A broadcast copies.
#include <vector>

#include "meshwise/collective/broadcast.hpp"

using namespace meshwise;

// expect: because::this_operation_combines_nothing<Sum>, try_<name_an_algorithm_such_as_Ring_or_nothing>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(Communicator& c, std::vector<int>& data) { broadcast<Sum>(c, data, 1); }
#else
void user(Communicator& c, std::vector<int>& data) { broadcast(c, data, 1); }
#endif
