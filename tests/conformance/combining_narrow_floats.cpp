// SPDX-License-Identifier: Apache-2.0
#include "combining.hpp"

namespace conformance {

void perform_on_narrow_floats(Ask& ask) {
  switch (ask.c->item()) {
    case Item::bf16: return combine_elements<meshwise::bf16, Item::bf16>(ask);
    case Item::f16: return combine_elements<meshwise::fp16, Item::f16>(ask);
    case Item::f8e4m3: return combine_elements<meshwise::f8e4m3, Item::f8e4m3>(ask);
    case Item::f8e5m2: return combine_elements<meshwise::f8e5m2, Item::f8e5m2>(ask);
    default: throw std::logic_error("no such element");
  }
}

}  // namespace conformance
