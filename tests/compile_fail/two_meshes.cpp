// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/elementwise.hpp"
#include "meshwise/tensor/inside.hpp"

#include "vocabulary.hpp"

// expect: because::meshes_differ, try_<bring_both_to_one_mesh>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows>& x, const Tensor<float, Rows, Layout<Mesh<dp>>>& y) { return x + y; }
#else
auto user(const On<Rows>& x, const Tensor<float, Rows, Layout<Mesh<dp>>>& y) { return inside<tp>(x) + y; }
#endif
