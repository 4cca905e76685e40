// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/rename.hpp"

#include "vocabulary.hpp"

// expect: because::dim_repeated<hidden>, try_<choose_a_dim_that_the_tensor_lacks>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows>& x) { return rename<batch, hidden>(x); }
#else
auto user(const On<Rows>& x) { return rename<batch, seq>(x); }
#endif
