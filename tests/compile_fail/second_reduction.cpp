// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/convert.hpp"

#include "vocabulary.hpp"

// expect: because::Partials_have_different_reductions<dp>, try_<reduce_one_of_them_first>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows, Partial<tp>>& x) { return view_as<Partial<dp, Max>>(x); }
#else
auto user(const On<Rows, Partial<tp>>& x) { return convert<Replicate<tp>, Partial<dp, Max>>(x); }
#endif
