// SPDX-License-Identifier: Apache-2.0
// Rows of variance 1 are not integers.
#include "meshwise/tensor/layer_norm.hpp"

#include "vocabulary.hpp"

// expect: because::function_of_real_numbers_on_integers<int>, try_<use_a_floating_point_element>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const Ids& ids) { return layer_norm(ids, ids, ids); }
#else
auto user(const On<Dims<batch>>& x) { return layer_norm(x, x, x); }
#endif
