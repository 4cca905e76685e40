// SPDX-License-Identifier: Apache-2.0
// Nothing is converted on the way.
#include <vector>

#include "meshwise/collective/reduce.hpp"

using namespace meshwise;

// expect: because::elements_differ, try_<use_one_element_type>, float, double
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(Communicator& c, std::vector<float>& in, std::vector<double>& out) { reduce(c, in, out, 0); }
#else
void user(Communicator& c, std::vector<float>& in, std::vector<float>& out) { reduce(c, in, out, 0); }
#endif
