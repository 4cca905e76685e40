// SPDX-License-Identifier: Apache-2.0
// A column-parallel layer adds its bias to split outputs.
#include "meshwise/parallel/tensor.hpp"

#include "vocabulary.hpp"

// expect: because::dim_placed_differently_in_the_operands<ffn>, try_<convert_bias_<Shard<ffn, tp>>>
using W = On<Weight, Shard<ffn, tp>>;
using Bias = On<Dims<ffn>>;
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows>& x, const W& w, const Bias& b) { return column_linear<hidden>(x, w, b); }
#else
auto user(const On<Rows>& x, const W& w, const Bias& b) {
  return column_linear<hidden>(x, w, convert<Shard<ffn, tp>>(b));
}
#endif
