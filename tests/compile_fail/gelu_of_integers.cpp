// SPDX-License-Identifier: Apache-2.0
// Its values are not integers.
#include "meshwise/tensor/activation.hpp"

#include "vocabulary.hpp"

// expect: because::function_of_real_numbers_on_integers<int>, try_<use_a_floating_point_element>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const Ids& ids) { return gelu(ids); }
#else
auto user(const On<Dims<batch>>& x) { return gelu(x); }
#endif
