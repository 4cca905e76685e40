// SPDX-License-Identifier: Apache-2.0
// A dim is summed once; counted twice, a mean would divide by its square.
#include "meshwise/tensor/mean.hpp"

#include "vocabulary.hpp"

// expect: because::dim_repeated<batch>, try_<name_each_dim_once>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows>& x) { return mean<batch, batch>(x); }
#else
auto user(const On<Rows>& x) { return mean<batch>(x); }
#endif
