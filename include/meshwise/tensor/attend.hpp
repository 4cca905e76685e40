// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tuple>
#include <utility>

#include "meshwise/tensor/detail/attention_state.hpp"

namespace meshwise {

/// Attention, softmax(factor q k^T) v over the keys that each query sees, without a matrix of all scores.
///
/// q: the dims seq, heads, head_dim and any others, in any order. k, v: placed alike; key<seq> instead of seq, and
/// either heads, or kv: heads that are shared by equal groups of neighbours (see shared_einsum). They may be without
/// other dims of q. Any placement but of head_dim and key<seq>, which are whole; q cut by seq beside whole keys is
/// context parallelism by an all-gather of keys and values, whatever the rule: masks and positions are global.
/// mask: an AttentionMask, e.g. `CausalMask{}`. factor: of the scores, mostly 1/sqrt(head_dim).
/// Result: Attended, whose `out` has the type of q, with the head_dim of v. Scores, soft-max (by running maximum and
/// sum) and sums are in the accumulate type, rounded once: no overflow as long as scores are finite. A query that sees
/// no key gives zeros.
/// Cost: local only. Tiles of 128 queries by 512 keys, as matrix products of the mesh's Gemm; tiles that are masked as
/// a whole are skipped. Allocates the result, for narrow elements also in the accumulate type, and one tile of
/// workspace. Errors: refused for cut keys, other dims, a Partial, integers; those of shared_einsum.
/// Source: Milakov and Gimelshein, arXiv 1805.02867; Dao et al., "FlashAttention", arXiv 2205.14135.
template <AnyTensor Q, AnyTensor K, AnyTensor V, AttentionMask M>
  requires detail::is_accepted<detail::attention_of<Q, K, V>>
[[nodiscard]] auto attend(const Q& q, const K& k, const V& v, const M& mask, double factor) {
  detail::AttentionForward<Q, K, M> forward("attend", q, k, v, mask, factor);
  forward.add(k, v, k.template positions<key<seq>>());
  return std::move(forward).finish();
}
template <AnyTensor Q, AnyTensor K, AnyTensor V, AttentionMask M>
  requires(!detail::is_accepted<detail::attention_of<Q, K, V>>)
[[nodiscard]] auto attend(const Q& q, const K& k, const V& v, const M& mask, double factor)
    -> detail::attention_of<Q, K, V>;

/// The gradients of attend.
///
/// dout: placed like q. saved: what attend returned for the same arguments. Result: AttentionBackward; the gradients at
/// keys and values are placed as they are, Partial over the axes that cut seq or heads of q but not of k, whose ranks
/// have other queries for them. Cost: as attend, five matrix products instead of two; nothing is saved but `out` and
/// one number for every query. Errors: as attend.
template <AnyTensor G, AnyTensor Q, AnyTensor K, AnyTensor V, class Out, class LogSum, AttentionMask M>
  requires detail::is_accepted<detail::attention_backward_of<detail::attention_of<Q, K, V>, G, Out, Q>>
[[nodiscard]] auto attend_backward(const G& dout, const Q& q, const K& k, const V& v,
                                   const Attended<Out, LogSum>& saved, const M& mask, double factor) {
  detail::AttentionReverse<Q, K, M> reverse("attend_backward", dout, q, k, v, saved, mask, factor);
  auto [dk, dv] = reverse.template add<detail::key_gradient_of<Q, K>>(k, v, k.template positions<key<seq>>());
  return std::move(reverse).finish(std::move(dk), std::move(dv));
}
template <AnyTensor G, AnyTensor Q, AnyTensor K, AnyTensor V, class Out, class LogSum, AttentionMask M>
  requires(!detail::is_accepted<detail::attention_backward_of<detail::attention_of<Q, K, V>, G, Out, Q>>)
[[nodiscard]] auto attend_backward(const G& dout, const Q& q, const K& k, const V& v,
                                   const Attended<Out, LogSum>& saved, const M& mask, double factor)
    -> detail::attention_backward_of<detail::attention_of<Q, K, V>, G, Out, Q>;

}  // namespace meshwise
