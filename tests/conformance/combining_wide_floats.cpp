// SPDX-License-Identifier: Apache-2.0
#include "combining.hpp"

namespace conformance {

void perform_on_wide_floats(Ask& ask) {
  switch (ask.c->item()) {
    case Item::f32: return combine_elements<float, Item::f32>(ask);
    case Item::f64: return combine_elements<double, Item::f64>(ask);
    default: throw std::logic_error("no such element");
  }
}

}  // namespace conformance
