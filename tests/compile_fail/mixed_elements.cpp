// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/elementwise.hpp"

#include "vocabulary.hpp"

// expect: because::elements_differ, try_<use_one_element_type>, float, double
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows>& x, const Tensor<double, Rows, Layout<Grid>>& doubles) { return x + doubles; }
#else
auto user(const On<Rows>& x, const On<Rows>& floats) { return x + floats; }
#endif
