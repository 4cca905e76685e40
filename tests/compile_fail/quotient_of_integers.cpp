// SPDX-License-Identifier: Apache-2.0
// The quotients of the parts of a sum round differently from the quotient of the sum.
#include "meshwise/tensor/scale.hpp"

#include "vocabulary.hpp"

#ifdef MESHWISE_MUST_NOT_COMPILE
using Kind = int;
#else
using Kind = float;
#endif

// expect: because::function_of_real_numbers_on_integers<int>, try_<use_a_floating_point_element>
auto user(const Tensor<Kind, Rows, Layout<Grid>>& x) { return x / 2; }
