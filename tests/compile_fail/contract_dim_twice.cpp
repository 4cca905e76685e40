// SPDX-License-Identifier: Apache-2.0
// Summed twice it would not be another sum.
#include "meshwise/tensor/contract.hpp"

#include "vocabulary.hpp"

// expect: because::dim_repeated<hidden>, try_<name_each_dim_once>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows>& x, const On<Weight>& w) { return contract<hidden, hidden>(x, w); }
#else
auto user(const On<Rows>& x, const On<Weight>& w) { return contract<hidden>(x, w); }
#endif
