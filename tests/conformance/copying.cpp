// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "ask.hpp"
#include "meshwise/collective/all_gather.hpp"
#include "meshwise/collective/all_gather_v.hpp"
#include "meshwise/collective/all_to_all.hpp"
#include "meshwise/collective/all_to_all_v.hpp"
#include "meshwise/collective/broadcast.hpp"
#include "meshwise/collective/gather.hpp"
#include "meshwise/collective/gather_v.hpp"
#include "meshwise/collective/redistribute.hpp"
#include "meshwise/collective/scatter.hpp"
#include "meshwise/collective/scatter_v.hpp"
#include "meshwise/schedule/bruck.hpp"
#include "meshwise/schedule/direct.hpp"
#include "meshwise/schedule/exchange.hpp"
#include "meshwise/schedule/knomial.hpp"
#include "meshwise/schedule/pairwise.hpp"
#include "meshwise/schedule/ring.hpp"
#include "perform.hpp"

// The operations that copy, for all types.
namespace conformance {

namespace {

/// A struct that is no Element.
struct Plain {
  std::uint32_t words[3];
};

template <class T, bool every>
void copy_one_span(Ask& ask) {
  using namespace meshwise;
  const Spans<T> s(ask);
  const auto& options = ask.options;
  Communicator& c = *ask.communicator;
  switch (ask.c->verb()) {
    case Verb::all_gather:
      return in_manner<every>(
          ask, [&](auto&) { all_gather(c, s.whole, options); },
          [&](auto&) { return start_all_gather(c, s.whole, options); },
          [&](auto&) { return prepare_all_gather(c, s.whole, options); });
    case Verb::all_gather_v:
      return in_manner<every>(
          ask, [&](auto&) { all_gather_v(c, s.whole, ask.counts, options); },
          [&](auto&) { return start_all_gather_v(c, s.whole, ask.counts, options); },
          [&](auto&) { return prepare_all_gather_v(c, s.whole, ask.counts, options); });
    default: throw std::logic_error("no such operation");
  }
}

template <class T, bool every, class... Choices>
void copy(Ask& ask) {
  using namespace meshwise;
  const Spans<T> s(ask);
  const auto& options = ask.options;
  const int root = ask.c->root_rank();
  Communicator& c = *ask.communicator;
  switch (ask.c->verb()) {
    case Verb::all_gather:
      return in_manner<every>(
          ask, [&](auto&) { all_gather<Choices...>(c, s.in, s.out, options); },
          [&](auto&) { return start_all_gather<Choices...>(c, s.in, s.out, options); },
          [&](auto&) { return prepare_all_gather<Choices...>(c, s.in, s.out, options); });
    case Verb::gather:
      return in_manner<every>(
          ask, [&](auto&) { gather<Choices...>(c, s.in, s.out, root, options); },
          [&](auto&) { return start_gather<Choices...>(c, s.in, s.out, root, options); },
          [&](auto&) { return prepare_gather<Choices...>(c, s.in, s.out, root, options); });
    case Verb::scatter:
      return in_manner<every>(
          ask, [&](auto&) { scatter<Choices...>(c, s.in, s.out, root, options); },
          [&](auto&) { return start_scatter<Choices...>(c, s.in, s.out, root, options); },
          [&](auto&) { return prepare_scatter<Choices...>(c, s.in, s.out, root, options); });
    case Verb::all_to_all:
      return in_manner<every>(
          ask, [&](auto&) { all_to_all<Choices...>(c, s.in, s.out, options); },
          [&](auto&) { return start_all_to_all<Choices...>(c, s.in, s.out, options); },
          [&](auto&) { return prepare_all_to_all<Choices...>(c, s.in, s.out, options); });
    case Verb::all_gather_v:
      return in_manner<every>(
          ask, [&](auto&) { all_gather_v<Choices...>(c, s.in, s.out, ask.counts, options); },
          [&](auto&) { return start_all_gather_v<Choices...>(c, s.in, s.out, ask.counts, options); },
          [&](auto&) { return prepare_all_gather_v<Choices...>(c, s.in, s.out, ask.counts, options); });
    case Verb::gather_v:
      return in_manner<every>(
          ask, [&](auto&) { gather_v<Choices...>(c, s.in, s.out, ask.counts, root, options); },
          [&](auto&) { return start_gather_v<Choices...>(c, s.in, s.out, ask.counts, root, options); },
          [&](auto&) { return prepare_gather_v<Choices...>(c, s.in, s.out, ask.counts, root, options); });
    case Verb::scatter_v:
      return in_manner<every>(
          ask, [&](auto&) { scatter_v<Choices...>(c, s.in, s.out, ask.counts, root, options); },
          [&](auto&) { return start_scatter_v<Choices...>(c, s.in, s.out, ask.counts, root, options); },
          [&](auto&) { return prepare_scatter_v<Choices...>(c, s.in, s.out, ask.counts, root, options); });
    case Verb::all_to_all_v:
      return in_manner<every>(
          ask, [&](auto&) { all_to_all_v<Choices...>(c, s.in, s.out, ask.counts, ask.counts2, options); },
          [&](auto&) { return start_all_to_all_v<Choices...>(c, s.in, s.out, ask.counts, ask.counts2, options); },
          [&](auto&) { return prepare_all_to_all_v<Choices...>(c, s.in, s.out, ask.counts, ask.counts2, options); });
    case Verb::redistribute:
      return in_manner<every>(
          ask, [&](auto&) { redistribute<Choices...>(c, s.in, s.out, ask.counts, ask.counts2, options); },
          [&](auto&) { return start_redistribute<Choices...>(c, s.in, s.out, ask.counts, ask.counts2, options); },
          [&](auto&) { return prepare_redistribute<Choices...>(c, s.in, s.out, ask.counts, ask.counts2, options); });
    case Verb::broadcast:
      return in_manner<every>(
          ask, [&](auto&) { broadcast<Choices...>(c, s.out, root, options); },
          [&](auto&) { return start_broadcast<Choices...>(c, s.out, root, options); },
          [&](auto&) { return prepare_broadcast<Choices...>(c, s.out, root, options); });
    default: throw std::logic_error("no such operation");
  }
}

/// Schedules named by their types.
template <class T>
void copy_by_policy(Ask& ask) {
  switch (ask.c->verb()) {
    case Verb::all_gather: return copy<T, true, meshwise::Bruck>(ask);
    case Verb::all_gather_v: return copy<T, true, meshwise::Ring>(ask);
    case Verb::gather:
    case Verb::gather_v:
    case Verb::scatter:
    case Verb::scatter_v:
    case Verb::broadcast: return copy<T, true, meshwise::Knomial<3>>(ask);
    case Verb::all_to_all: return copy<T, true, meshwise::Pairwise>(ask);
    case Verb::all_to_all_v: return copy<T, true, meshwise::Direct>(ask);
    case Verb::redistribute: return copy<T, true, meshwise::Exchange>(ask);
    default: throw std::logic_error("no such operation");
  }
}

}  // namespace

void perform_copy(Ask& ask) {
  if (by_policy(*ask.c)) return copy_by_policy<std::int32_t>(ask);
  if (ask.one_span)
    return ask.c->item() == Item::i32 ? copy_one_span<std::int32_t, true>(ask)
                                      : copy_one_span<meshwise::bf16, false>(ask);
  switch (ask.c->item()) {
    case Item::f32: return copy<float, copied_in_every_manner(Item::f32)>(ask);
    case Item::f64: return copy<double, copied_in_every_manner(Item::f64)>(ask);
    case Item::bf16: return copy<meshwise::bf16, copied_in_every_manner(Item::bf16)>(ask);
    case Item::f16: return copy<meshwise::fp16, copied_in_every_manner(Item::f16)>(ask);
    case Item::i8: return copy<std::int8_t, copied_in_every_manner(Item::i8)>(ask);
    case Item::u8: return copy<std::uint8_t, copied_in_every_manner(Item::u8)>(ask);
    case Item::i32: return copy<std::int32_t, copied_in_every_manner(Item::i32)>(ask);
    case Item::u32: return copy<std::uint32_t, copied_in_every_manner(Item::u32)>(ask);
    case Item::i64: return copy<std::int64_t, copied_in_every_manner(Item::i64)>(ask);
    case Item::u64: return copy<std::uint64_t, copied_in_every_manner(Item::u64)>(ask);
    case Item::f8e4m3: return copy<meshwise::f8e4m3, copied_in_every_manner(Item::f8e4m3)>(ask);
    case Item::f8e5m2: return copy<meshwise::f8e5m2, copied_in_every_manner(Item::f8e5m2)>(ask);
    case Item::plain: return copy<Plain, copied_in_every_manner(Item::plain)>(ask);
  }
}

}  // namespace conformance
