// SPDX-License-Identifier: Apache-2.0
// A template argument says how to combine or by which algorithm, not the element.
#include <vector>

#include "meshwise/collective/all_reduce.hpp"

using namespace meshwise;

// expect: because::this_is_neither_a_combination_nor_an_algorithm<int>, try_<name_a_combination_such_as_Sum_or_an_algorithm_such_as_Ring>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(Communicator& c, std::vector<int>& data) { all_reduce<int>(c, data); }
#else
void user(Communicator& c, std::vector<int>& data) { all_reduce<Sum>(c, data); }
#endif
