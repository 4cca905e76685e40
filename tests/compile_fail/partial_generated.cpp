// SPDX-License-Identifier: Apache-2.0
// Who would hold which summand?
#include "meshwise/tensor/generate.hpp"

#include "vocabulary.hpp"

// expect: because::Partial_cannot_be_generated<tp>, try_<generate_it_replicated_then_view_as_<Partial<tp
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const Grid& mesh) {
  return generate<On<Rows, Partial<tp>>>(mesh, {4, 8}, [](const auto&) { return 1.0F; });
}
#else
auto user(const Grid& mesh) {
  return view_as<Partial<tp>>(generate<On<Rows>>(mesh, {4, 8}, [](const auto&) { return 1.0F; }));
}
#endif
