// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

#include "meshwise/tensor/attend.hpp"
#include "meshwise/tensor/backward.hpp"

namespace meshwise {

/// What ulysses_attention gives, and what its backward needs of it.
///
/// Q, K: the types of queries and of keys and values; AllQ, AllK: the same where every rank has whole sequences.
template <class Q, class K, class AllQ, class AllK, class LogSum>
struct UlyssesAttended {
  using queries = Q;
  using keys = K;

  Q out;
  AllQ q;
  AllK k, v;
  Attended<AllQ, LogSum> by_heads;
  Extents<typename K::dims> k_extents, v_extents;
};

namespace detail {

/// Says that keys and values go where their queries go.
struct where_queries_go;

template <class A, class To, class K>
using keys_to = std::conditional_t<std::is_same_v<To, where_queries_go>, Shard<share_of<K>, A>, To>;

/// A conversion of a tensor type, as a type.
template <class T, class P>
using converted_to = typename converted_of<accepted<T>, P>::is;

/// The verdict on attention of a sequence that A cuts, by heads: queries to Shard<heads, A>, keys and values to P.
template <class A, class P, class Q, class K, class V>
consteval auto ulysses_verdict() {
  using LQ = typename Q::layout;
  using LK = typename K::layout;
  using dims = decltype(attention_dims<Q, K, V>());
  if constexpr (dims::size != 0) {
    return type<front<dims>>{};
  } else if constexpr (!contains<A, axes_of_layout<LQ>>) {
    return type<refused<because::axis_not_in_the_mesh<A>, try_<name_an_axis_of_this_mesh>, LQ>>{};
  } else if constexpr (!contains<A, shard_axes<LQ, seq>>) {
    return type<refused<because::axis_does_not_cut_the_dim<A, seq>,
                        try_<convert_first_operand_<Shard<seq, A>>, or_<use_attend>>, LQ>>{};
  } else if constexpr (!contains<A, shard_axes<LK, key<seq>>>) {
    return type<refused<because::axis_does_not_cut_the_dim<A, key<seq>>,
                        try_<convert_second_operand_<Shard<key<seq>, A>>>, LK>>{};
  } else {
    using queries = converted_of<accepted<Q>, Shard<heads, A>>;
    using keys = converted_of<accepted<K>, P>;
    if constexpr (!is_accepted<both_of<queries, keys>>) {
      return type<both_of<queries, keys>>{};
    } else {
      using verdict = attention_of<typename queries::is, typename keys::is, typename keys::is>;
      return type<std::conditional_t<is_accepted<verdict>, accepted<Q>, verdict>>{};
    }
  }
}
template <class A, class To, AnyTensor Q, AnyTensor K, AnyTensor V>
using ulysses_of = typename decltype(ulysses_verdict<A, keys_to<A, To, bare<K>>, bare<Q>, bare<K>, bare<V>>())::is;

/// The extents of something that differs in head_dim: that of x.
template <class Q, class T>
Extents<typename Q::dims> with_width_of(Extents<typename Q::dims> extents, const T& x) {
  extents[dim_index<head_dim, Q>] = x.template extent<head_dim>();
  return extents;
}

/// Groups of heads that are cut with their keys stay whole only if the ranks divide the heads of keys.
template <class A, class AllK, class Q, class K>
void check_heads(const Q& q, const K& k) {
  using One = share_of<K>;
  const std::size_t h = q.template extent<heads>(), shares = k.template extent<One>();
  const std::size_t parts = part_of(k.mesh(), shard_axes<typename AllK::layout, One>{}).parts;
  if (h <= shares || shares % parts == 0) return;
  fail("ulysses_attention", name_of<One>() + " that " + std::to_string(parts) + " ranks divide",
       name_of<One>() + " = " + std::to_string(shares) + " for " + name_of<heads>() + " = " + std::to_string(h),
       "give every rank all keys, ulysses_attention<" + name_of<A>() + ", Replicate<" + name_of<A>() +
           ">>(q, k, v, ...)",
       q.mesh().world().rank());
}

}  // namespace detail

/// Attention of a sequence that A cuts, between two conversions: every rank gets the whole sequence of some of the
/// heads (all-to-all), attends, and gives the result back by its part of the sequence.
///
/// KeysTo: where keys and values go: if left out, where their queries go, or `Replicate<A>`, which is an all-gather,
/// for fewer heads of keys than ranks. q, k, v, mask, factor: as in `attend`, with A as the last axis that cuts seq and
/// key<seq>, by any rule: under each of them a causal mask costs all ranks the same. Heads that the ranks do not divide
/// are cut unevenly; ranks beyond their number have none.
/// Result: UlyssesAttended. Cost: receives (n-1)/n of what a rank holds of q, k, v and out; of k and v n-1 times that
/// if they are replicated. Keeps q, k, v and out by heads for the backward. Ordering: collective along A. Errors: as
/// attend and convert; refused where A does not cut the sequence or is not the last axis of it; heads of keys that the
/// ranks would cut apart from their groups.
/// Source: Jacobs et al., "DeepSpeed Ulysses", arXiv 2309.14509.
template <Axis A, class KeysTo = detail::where_queries_go, AnyTensor Q, AnyTensor K, AnyTensor V, AttentionMask M>
  requires detail::is_accepted<detail::ulysses_of<A, KeysTo, Q, K, V>>
[[nodiscard]] auto ulysses_attention(const Q& q, const K& k, const V& v, const M& mask, double factor) {
  using To = detail::keys_to<A, KeysTo, K>;
  using AllK = detail::converted_to<K, To>;
  if constexpr (!detail::placement_traits<To>::replicate) detail::check_heads<A, AllK>(q, k);
  const auto all_q = convert<Shard<heads, A>>(q);
  const AllK all_k = convert<To>(k), all_v = convert<To>(v);
  const auto attended = attend(all_q, all_k, all_v, mask, factor);
  using Result = UlyssesAttended<Q, K, detail::bare<decltype(all_q)>, AllK, detail::bare<decltype(attended.log_sum)>>;
  return Result{backward_to<Q>(attended.out, detail::with_width_of<Q>(q.extents(), v)),
                all_q,
                all_k,
                all_v,
                attended,
                k.extents(),
                v.extents()};
}
template <Axis A, class KeysTo = detail::where_queries_go, AnyTensor Q, AnyTensor K, AnyTensor V, AttentionMask M>
  requires(!detail::is_accepted<detail::ulysses_of<A, KeysTo, Q, K, V>>)
[[nodiscard]] auto ulysses_attention(const Q& q, const K& k, const V& v, const M& mask, double factor)
    -> detail::ulysses_of<A, KeysTo, Q, K, V>;

/// The gradients of ulysses_attention: the same conversions, the other way round.
///
/// dout: placed like `out`. saved: what ulysses_attention returned. Result: AttentionBackward, each gradient placed as
/// its value, and Partial over the axes that cut heads, but not those of keys. Cost: receives what the forward
/// receives; keys and values that were replicated cost a reduce-scatter. Ordering and errors: as ulysses_attention.
template <AnyTensor G, class Q, class K, class AllQ, class AllK, class LogSum, AttentionMask M>
  requires detail::is_accepted<detail::alike_of<G, Q>>
[[nodiscard]] auto ulysses_attention_backward(const G& dout, const UlyssesAttended<Q, K, AllQ, AllK, LogSum>& saved,
                                              const M& mask, double factor) {
  const auto by_heads = attend_backward(backward_to<AllQ>(dout, saved.by_heads.out.extents()), saved.q, saved.k,
                                        saved.v, saved.by_heads, mask, factor);
  auto dk = backward_to<K>(by_heads.k, saved.k_extents);
  auto dv = backward_to<K>(by_heads.v, saved.v_extents);
  Q dq = backward_to<Q>(by_heads.q, detail::with_width_of<Q>(saved.out.extents(), saved.q));
  return AttentionBackward<Q, decltype(dk), decltype(dv)>{std::move(dq), std::move(dk), std::move(dv), by_heads.scores};
}
template <AnyTensor G, class Q, class K, class AllQ, class AllK, class LogSum, AttentionMask M>
  requires(!detail::is_accepted<detail::alike_of<G, Q>>)
[[nodiscard]] auto ulysses_attention_backward(const G& dout, const UlyssesAttended<Q, K, AllQ, AllK, LogSum>& saved,
                                              const M& mask, double factor) -> detail::alike_of<G, Q>;

}  // namespace meshwise
