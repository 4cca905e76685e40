// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "factors.hpp"
#include "meshwise/collective/call.hpp"
#include "meshwise/collective/communicator.hpp"

namespace conformance {

/// What lies between the two runs of a prepared collective: the caller looks at the results and makes new data.
class Interlude {
 public:
  virtual ~Interlude() = default;
  virtual void between() = 0;
};

/// One call of the library without types: what `perform` turns into one that has them.
struct Ask {
  const Case* c = nullptr;
  meshwise::Communicator* communicator = nullptr;
  const void* in = nullptr;
  std::size_t in_count = 0;
  void* out = nullptr;
  std::size_t out_count = 0;
  void* whole = nullptr;  ///< the buffer of which the others are parts, if in place
  std::size_t whole_count = 0;
  bool one_span = false;                 ///< the form that takes the whole buffer alone
  std::span<const std::size_t> counts;   ///< of all ranks, what a rank sends to each, or before a redistribution
  std::span<const std::size_t> counts2;  ///< what a rank receives from each, or after a redistribution
  meshwise::CollectiveOptions options;
  Interlude* interlude = nullptr;
  std::size_t expected_result = 0;  ///< elements that `wait` and `run` give back
};

/// Whether the library is called with its schedule as a template argument, instead of an option: once per operation.
inline bool by_policy(const Case& c) {
  return c.wanted() == meshwise::Algorithm::custom && c.item() == Item::i32 && c.combining() == Combining::sum;
}

/// Whether all ways of calling are compiled for this element and combination. They differ in nothing that depends on
/// both: what varies with the types is settled before a call is run or started.
constexpr bool in_every_manner(Item item, Combining how_combined) {
  return how_combined == Combining::sum || item == Item::i32 ||
         (item == Item::f32 && (how_combined == Combining::average || how_combined == Combining::pre_multiplied));
}
constexpr bool copied_in_every_manner(Item item) {
  return item == Item::i32 || item == Item::f32 || item == Item::f8e5m2 || item == Item::plain;
}

/// Whether the forms with one span are compiled.
constexpr bool with_one_span(Item item, Combining how_combined) {
  return how_combined == Combining::sum && (item == Item::i32 || item == Item::bf16);
}

// Each in a file of its own, which is the only one to instantiate those operations.
void perform_on_integers(Ask& ask);
void perform_on_wide_floats(Ask& ask);
void perform_on_narrow_floats(Ask& ask);
void perform_copy(Ask& ask);

}  // namespace conformance
