// SPDX-License-Identifier: Apache-2.0
// A rank's share of a loss is not the loss.
#include "meshwise/tensor/value.hpp"

#include "vocabulary.hpp"

// expect: because::nonlinear_function_of_Partial<dp>, try_<convert_<Replicate<dp>>>
#ifdef MESHWISE_MUST_NOT_COMPILE
float user(const On<Dims<>, Partial<dp>>& loss) { return value(loss); }
#else
float user(const On<Dims<>, Partial<dp>>& loss) { return value(convert<Replicate<dp>>(loss)); }
#endif
