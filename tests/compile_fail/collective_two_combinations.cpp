// SPDX-License-Identifier: Apache-2.0
// One call, one way to combine.
#include <vector>

#include "meshwise/collective/all_reduce.hpp"

using namespace meshwise;

// expect: because::two_combinations_are_named<Sum, Max>, try_<keep_one_of_them>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(Communicator& c, std::vector<int>& data) { return prepare_all_reduce<Sum, Max>(c, data); }
#else
auto user(Communicator& c, std::vector<int>& data) { return prepare_all_reduce<Max>(c, data); }
#endif
