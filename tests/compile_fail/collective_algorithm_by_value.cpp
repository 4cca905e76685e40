// SPDX-License-Identifier: Apache-2.0
// The numbers of algorithms are for options.
#include <vector>

#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/schedule/ring.hpp"

using namespace meshwise;

// expect: because::an_algorithm_is_named_by_its_type<(Algorithm::)?ring>, try_<name_a_type_such_as_Ring, or_<set_options_algorithm>>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(Communicator& c, std::vector<float>& data) { all_reduce<Algorithm::ring, Max>(c, data); }
#else
void user(Communicator& c, std::vector<float>& data) { all_reduce<Ring, Max>(c, data); }
#endif
