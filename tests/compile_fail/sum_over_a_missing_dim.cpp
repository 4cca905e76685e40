// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/reductions.hpp"

#include "vocabulary.hpp"

// expect: because::dim_not_in_the_tensor<seq>, try_<name_a_dim_of_this_tensor>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows>& x) { return sum<seq>(x); }
#else
auto user(const On<Rows>& x) { return sum<batch>(x); }
#endif
