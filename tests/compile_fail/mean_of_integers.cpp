// SPDX-License-Identifier: Apache-2.0
// Rounded on every rank it would be a sum of rounded shares.
#include "meshwise/tensor/mean.hpp"
#include "meshwise/tensor/value.hpp"

#include "vocabulary.hpp"

// expect: because::mean_of_integers_is_not_an_integer<int>, try_<sum_and_divide_with_the_rounding_you_want>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const Ids& ids) { return mean<batch>(ids); }
#else
int user(const Ids& ids) { return value(sum<batch>(ids)) / static_cast<int>(ids.extent<batch>()); }
#endif
