// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tuple>
#include <utility>

#include "meshwise/tensor/attend.hpp"
#include "meshwise/tensor/stream.hpp"

namespace meshwise {

namespace detail {

/// The verdict on attention in which A cuts the sequence of queries and keys alike.
template <class A, class Q, class K, class V>
consteval auto ring_attention_verdict() {
  using LQ = typename Q::layout;
  using LK = typename K::layout;
  using dims = decltype(attention_dims<Q, K, V>());
  using piece = piece_of<Q, A>;
  if constexpr (dims::size != 0) {
    return type<front<dims>>{};
  } else if constexpr (!contains<A, shard_axes<LQ, seq>> && contains<A, axes_of_layout<LQ>>) {
    return type<refused<because::axis_does_not_cut_the_dim<A, seq>,
                        try_<convert_first_operand_<Shard<seq, A>>, or_<use_attend>>, LQ>>{};
  } else if constexpr (!is_accepted<piece>) {
    return type<piece>{};
  } else {
    using queries = shard_entries<LQ, seq>;
    using keys = shard_entries<LK, key<seq>>;
    if constexpr (!std::is_same_v<queries, keys>) {
      return type<refused<because::dim_placed_differently_in_the_operands<key<seq>>,
                          try_<place_second<key<seq>, queries, keys>>, LQ, LK>>{};
    } else {
      using verdict = attention_of<typename piece::is, typename piece_of<K, A>::is, typename piece_of<V, A>::is>;
      return type<std::conditional_t<is_accepted<verdict>, accepted<Q>, verdict>>{};
    }
  }
}
template <class A, AnyTensor Q, AnyTensor K, AnyTensor V>
using ring_attention_of = typename decltype(ring_attention_verdict<A, bare<Q>, bare<K>, bare<V>>())::is;
template <class A, class G, class Out, class Q, class K, class V>
using ring_attention_backward_of = attention_backward_of<ring_attention_of<A, Q, K, V>, G, Out, Q>;

}  // namespace detail

/// Attention of a sequence that A cuts: the queries stay where they are, keys and values go round the ring of the ranks
/// along A in pieces, each of which is attended to while the next one is on its way.
///
/// q, k, v, mask, factor: as in `attend`, with `Shard<seq, A>` for q and `Shard<key<seq>, A>` for k and v, of any rule:
/// under a causal mask `Zigzag<A>` gives every rank the same work (2 n C^2 + C pairs of n ranks, C = length / 2n),
/// `Striped<A>` nearly, and contiguous parts leave the first ranks idle. Result: as attend.
/// Cost: receives what an all_gather of k and v along A receives, in n - 1 hops; holds at most two pieces besides the
/// own, and the sums in the accumulate type. Ordering: collective along A. Errors: as attend and stream; refused where
/// A does not cut q by its sequence alone, or keys and values otherwise than q.
/// Source: Liu et al., "Ring Attention with Blockwise Transformers", arXiv 2310.01889.
template <Axis A, AnyTensor Q, AnyTensor K, AnyTensor V, AttentionMask M>
  requires detail::is_accepted<detail::ring_attention_of<A, Q, K, V>>
[[nodiscard]] auto ring_attention(const Q& q, const K& k, const V& v, const M& mask, double factor) {
  detail::AttentionForward<Q, K, M> forward("ring_attention", q, k, v, mask, factor);
  stream<A>(std::tie(k, v), [&](const auto& some_k, const auto& some_v, int, const Positions& keys) {
    forward.add(some_k, some_v, keys);
  });
  return std::move(forward).finish();
}
template <Axis A, AnyTensor Q, AnyTensor K, AnyTensor V, AttentionMask M>
  requires(!detail::is_accepted<detail::ring_attention_of<A, Q, K, V>>)
[[nodiscard]] auto ring_attention(const Q& q, const K& k, const V& v, const M& mask, double factor)
    -> detail::ring_attention_of<A, Q, K, V>;

/// The gradients of ring_attention: keys and values go round once more, and their gradients travel behind them.
///
/// dout: placed like q. saved: what ring_attention returned for the same arguments. Result: AttentionBackward, each
/// gradient placed as its value, and Partial as attend_backward says. Gradients travel in the accumulate type and are
/// rounded once, at their owners. Cost: receives an all_gather of k and v, and a reduce_scatter of their gradients in
/// the accumulate type; of these it holds at most four pieces: of the own and of the present keys, one that leaves and
/// one that arrives. Ordering and errors: as ring_attention.
template <Axis A, AnyTensor G, AnyTensor Q, AnyTensor K, AnyTensor V, class Out, class LogSum, AttentionMask M>
  requires detail::is_accepted<detail::ring_attention_backward_of<A, G, Out, Q, K, V>>
[[nodiscard]] auto ring_attention_backward(const G& dout, const Q& q, const K& k, const V& v,
                                           const Attended<Out, LogSum>& saved, const M& mask, double factor) {
  using Gradient = detail::key_gradient_of<typename detail::piece_of<Q, A>::is, typename detail::piece_of<K, A>::is>;
  detail::AttentionReverse<Q, K, M> reverse("ring_attention_backward", dout, q, k, v, saved, mask, factor);
  auto [dk, dv] = stream<A>(std::tie(k, v), [&](const auto& some_k, const auto& some_v, int, const Positions& keys) {
    return reverse.template add<Gradient>(some_k, some_v, keys);
  });
  return std::move(reverse).finish(std::move(dk), std::move(dv));
}
template <Axis A, AnyTensor G, AnyTensor Q, AnyTensor K, AnyTensor V, class Out, class LogSum, AttentionMask M>
  requires(!detail::is_accepted<detail::ring_attention_backward_of<A, G, Out, Q, K, V>>)
[[nodiscard]] auto ring_attention_backward(const G& dout, const Q& q, const K& k, const V& v,
                                           const Attended<Out, LogSum>& saved, const M& mask, double factor)
    -> detail::ring_attention_backward_of<A, G, Out, Q, K, V>;

}  // namespace meshwise
