// SPDX-License-Identifier: Apache-2.0
// The input gradient of a column-parallel layer goes to where its input came from, and this one has no sequence.
#include "meshwise/parallel/tensor.hpp"

#include "vocabulary.hpp"

// expect: because::dim_not_in_the_tensor<seq>, try_<name_a_dim_of_this_tensor>
using W = On<Weight, Shard<ffn, tp>>;
using Dy = On<Dims<batch, ffn>, Shard<ffn, tp>>;
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const Dy& dy, const On<Rows>& x, const W& w) { return column_linear_backward<Shard<seq, tp>>(dy, x, w); }
#else
auto user(const Dy& dy, const On<Rows>& x, const W& w) { return column_linear_backward<Shard<batch, tp>>(dy, x, w); }
#endif
