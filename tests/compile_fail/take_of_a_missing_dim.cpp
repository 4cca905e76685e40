// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/take.hpp"

#include "vocabulary.hpp"

// expect: because::dim_not_in_the_tensor<seq>, try_<name_a_dim_of_this_tensor>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows>& x) { return take<seq>(x, 2); }
#else
auto user(const On<Rows>& x) { return take<batch>(x, 2); }
#endif
