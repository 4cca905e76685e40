// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>

#include "meshwise/core/split.hpp"

namespace meshwise {

/// Which keys a query sees: a function from the global index of a query to a range of global indices of keys.
///
/// The range may be empty, and may end beyond the last key. Packed documents, each of which sees itself only:
/// `[&](std::size_t q) { return Range{begin_of[q], q + 1 - begin_of[q]}; }`. Global indices mean what they mean
/// whatever rule cuts the sequence. Ordering: called once per query and piece of the keys, on every rank for its own
/// queries.
template <class M>
concept AttentionMask = requires(const M& mask, std::size_t query) {
  { mask(query) } -> std::convertible_to<Range>;
};

/// Every query sees all keys.
struct NoMask {
  constexpr Range operator()(std::size_t) const { return {0, ~std::size_t{0}}; }
};

/// Query q sees the keys up to q.
struct CausalMask {
  constexpr Range operator()(std::size_t query) const { return {0, query + 1}; }
};

/// Query q sees the last `size` keys up to q; of size 0 none.
struct WindowMask {
  std::size_t size = 0;

  constexpr Range operator()(std::size_t query) const {
    const std::size_t seen = size <= query ? size : query + 1;
    return {query + 1 - seen, seen};
  }
};

}  // namespace meshwise
