// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/elementwise.hpp"
#include "meshwise/tensor/inside.hpp"

#include "vocabulary.hpp"

// expect: because::meshes_differ, try_<bring_both_to_one_mesh>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const On<Rows>& x, const Tensor<float, Rows, Layout<Mesh<dp>>>& on_dp) { return x + on_dp; }
#else
auto user(const On<Rows>& x, const Tensor<float, Rows, Layout<Mesh<dp>>>& on_dp) { return inside<tp>(x) + on_dp; }
#endif
