// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "meshwise/parallel/attention_core.hpp"
#include "meshwise/parallel/context.hpp"

namespace meshwise {

namespace detail {

/// Attention in tiles as what a block asks for. Ring: the axis whose ranks pass keys on, or void.
template <class Q, class K, class Ring, class Mask>
struct TiledCore {
  using Saved = typename decltype([] {
    if constexpr (std::is_void_v<Ring>) {
      return type<decltype(attend(std::declval<const Q&>(), std::declval<const K&>(), std::declval<const K&>(),
                                  std::declval<const Mask&>(), 1.0))>{};
    } else {
      return type<decltype(ring_attention<Ring>(std::declval<const Q&>(), std::declval<const K&>(),
                                                std::declval<const K&>(), std::declval<const Mask&>(), 1.0))>{};
    }
  }())::is;

  static std::pair<Q, Saved> forward(const Q& q, const K& k, const K& v, double factor, const ScoreDrop& drop) {
    if (drop.p != 0) {
      fail("TransformerBlock", "no dropout of attention probabilities, which attention in tiles never has as a whole",
           "probability " + std::to_string(drop.p), "set Drop::scores.p to 0, or use CausalScores",
           q.mesh().world().rank());
    }
    Saved saved = [&] {
      if constexpr (std::is_void_v<Ring>) {
        return attend(q, k, v, Mask{}, factor);
      } else {
        return ring_attention<Ring>(q, k, v, Mask{}, factor);
      }
    }();
    return {saved.out, std::move(saved)};
  }

  static auto backward(const Q& dout, const Q& q, const K& k, const K& v, const Saved& saved, double factor,
                       const ScoreDrop&) {
    if constexpr (std::is_void_v<Ring>) {
      return attend_backward(dout, q, k, v, saved, Mask{}, factor);
    } else {
      return ring_attention_backward<Ring>(dout, q, k, v, saved, Mask{}, factor);
    }
  }
};

}  // namespace detail

/// Attention without a matrix of all scores (see `attend`), for BlockForm::attention.
///
/// Mask: an AttentionMask without state. Saves one number per query and head; Recompute::selective has nothing to drop
/// and is none. Errors: dropout of probabilities.
template <AttentionMask Mask = CausalMask>
struct TiledAttention {
  template <class Q, class K, Recompute, Masks>
  using Core = detail::TiledCore<Q, K, void, Mask>;
};

/// The same for a sequence that A cuts (see `ring_attention`), beside `BlockForm::sequence` of `Along<Zigzag<A>>` or
/// another rule.
template <Axis A, AttentionMask Mask = CausalMask>
struct RingAttention {
  template <class Q, class K, Recompute, Masks>
  using Core = detail::TiledCore<Q, K, A, Mask>;
};

}  // namespace meshwise
