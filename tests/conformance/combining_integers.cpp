// SPDX-License-Identifier: Apache-2.0
#include "combining.hpp"

namespace conformance {

void perform_on_integers(Ask& ask) {
  switch (ask.c->item()) {
    case Item::i8: return combine_elements<std::int8_t, Item::i8>(ask);
    case Item::u8: return combine_elements<std::uint8_t, Item::u8>(ask);
    case Item::i32: return combine_elements<std::int32_t, Item::i32>(ask);
    case Item::u32: return combine_elements<std::uint32_t, Item::u32>(ask);
    case Item::i64: return combine_elements<std::int64_t, Item::i64>(ask);
    case Item::u64: return combine_elements<std::uint64_t, Item::u64>(ask);
    default: throw std::logic_error("no such element");
  }
}

}  // namespace conformance
