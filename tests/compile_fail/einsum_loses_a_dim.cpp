// SPDX-License-Identifier: Apache-2.0
// A dim that only one operand has is never summed silently.
#include "meshwise/tensor/contract.hpp"
#include "meshwise/tensor/reductions.hpp"

#include "vocabulary.hpp"

// expect: because::summed_dim_only_in_one_operand<batch>, try_<keep_it_in_the_result_or_sum_it_first>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows>& x, const On<Weight>& w) { return einsum<Dims<ffn>>(x, w); }
#else
auto user(const On<Rows>& x, const On<Weight>& w) { return einsum<Dims<ffn>>(sum<batch>(x), w); }
#endif
