// SPDX-License-Identifier: Apache-2.0
// A result with one dim twice would be a diagonal.
#include "meshwise/tensor/contract.hpp"

#include "vocabulary.hpp"

// expect: because::dim_repeated<batch>, try_<name_each_dim_once>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows>& x, const On<Weight>& w) { return einsum<Dims<batch, ffn, batch>>(x, w); }
#else
auto user(const On<Rows>& x, const On<Weight>& w) { return einsum<Dims<batch, ffn>>(x, w); }
#endif
