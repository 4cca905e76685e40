// SPDX-License-Identifier: Apache-2.0
// A scale of 65536 is infinite in fp16: a scale for losses in fp16 knows that.
#include "meshwise/train/loss_scale.hpp"

#include "vocabulary.hpp"

using Loss = Tensor<fp16, Dims<>, Layout<Grid, Partial<dp>>>;

// expect: because::elements_differ, try_<use_one_element_type>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const LossScale<float>& scale, const Loss& loss) { return scale.seed(loss); }
#else
auto user(const LossScale<fp16>& scale, const Loss& loss) { return scale.seed(loss); }
#endif
