// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/contract.hpp"

#include "vocabulary.hpp"

// expect: because::summed_dim_only_in_one_operand<ffn>, try_<name_a_dim_of_both_operands>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows>& x, const On<Weight>& w) { return contract<ffn>(x, w); }
#else
auto user(const On<Rows>& x, const On<Weight>& w) { return contract<hidden>(x, w); }
#endif
