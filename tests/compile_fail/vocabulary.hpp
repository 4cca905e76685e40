// SPDX-License-Identifier: Apache-2.0
// Types that the refusal tests share.
#pragma once

#include "meshwise/tensor/tensor.hpp"

using namespace meshwise;

using Grid = Mesh<dp, tp>;
template <class D, class... Ps>
using On = Tensor<float, D, Layout<Grid, Ps...>>;

using Rows = Dims<batch, hidden>;
using Weight = Dims<hidden, ffn>;
using Vector = Dims<hidden>;
using Ids = Tensor<int, Dims<batch>, Layout<Grid>>;
