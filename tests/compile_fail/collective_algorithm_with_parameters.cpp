// SPDX-License-Identifier: Apache-2.0
// An algorithm that cannot be made from its type alone.
#include <vector>

#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/schedule/ring.hpp"

using namespace meshwise;

struct Mine : Ring {
  explicit Mine(int) {}
};

// expect: because::this_algorithm_needs_parameters<Mine>, try_<pass_an_object_of_it_in_options_generator>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(Communicator& c, std::vector<int>& data) { all_reduce<Mine>(c, data); }
#else
void user(Communicator& c, std::vector<int>& data) {
  const Mine mine(2);
  CollectiveOptions options;
  options.generator = AnyGenerator(mine);
  all_reduce(c, data, options);
}
#endif
