// SPDX-License-Identifier: Apache-2.0
// Counts change nothing about the template arguments.
#include <cstddef>
#include <vector>

#include "meshwise/collective/all_gather_v.hpp"

using namespace meshwise;

// expect: because::this_operation_combines_nothing<Max>, try_<name_an_algorithm_such_as_Ring_or_nothing>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(Communicator& c, std::vector<int>& data, const std::vector<std::size_t>& counts) {
  all_gather_v<Max>(c, data, counts);
}
#else
void user(Communicator& c, std::vector<int>& data, const std::vector<std::size_t>& counts) {
  all_gather_v(c, data, counts);
}
#endif
