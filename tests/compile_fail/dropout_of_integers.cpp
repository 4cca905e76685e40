// SPDX-License-Identifier: Apache-2.0
// A factor of 4/3 would be cut off.
#include "meshwise/tensor/dropout.hpp"

#include "vocabulary.hpp"

// expect: because::function_of_real_numbers_on_integers<int>, try_<use_a_floating_point_element>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const Ids& ids) { return dropout(ids, 0.25, 1); }
#else
auto user(const On<Dims<batch>>& x) { return dropout(x, 0.25, 1); }
#endif
