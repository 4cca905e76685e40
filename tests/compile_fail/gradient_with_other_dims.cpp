// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/backward.hpp"

#include "vocabulary.hpp"

// expect: because::dims_differ, try_<give_the_gradient_the_dims_of_the_value>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Dims<batch>>& wrong) { return backward_to<On<Rows>>(wrong); }
#else
auto user(const On<Rows>& dy) { return backward_to<On<Rows>>(dy); }
#endif
