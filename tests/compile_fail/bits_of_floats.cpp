// SPDX-License-Identifier: Apache-2.0
// Floats have no bits to combine.
#include "meshwise/tensor/reductions.hpp"

#include "vocabulary.hpp"

// expect: because::reduction_is_not_defined_on_this_element<BitAnd, float>
// expect: try_<use_an_element_that_the_reduction_is_defined_on>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Dims<batch>>& floats) { return reduce<BitAnd, batch>(floats); }
#else
auto user(const Ids& ids) { return reduce<BitAnd, batch>(ids); }
#endif
