// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>
#include <utility>

#include "meshwise/tensor/detail/shared_heads.hpp"
#include "meshwise/tensor/detail/verdicts.hpp"
#include "meshwise/tensor/rename.hpp"

namespace meshwise::detail {

/// The dim that says which head of keys: kv, or heads if every head has its own.
template <class K>
using share_of = std::conditional_t<contains<kv, dims_of<typename K::dims>>, kv, heads>;

template <class T, class Old, class New>
consteval auto renamed_unless_same() {
  if constexpr (std::is_same_v<Old, New>) {
    return type<T>{};
  } else {
    return type<typename rename_of<T, Old, New>::is>{};
  }
}
/// The same type with heads called kv, as the products of shared heads want it.
template <class K>
using shares_of = typename decltype(renamed_unless_same<K, share_of<K>, kv>())::is;
template <class K>
shares_of<K> by_shares(const K& k) {
  return shares_of<K>(k.mesh(), k.extents(), k.storage(), k.offset());
}

/// Attention scores, dims and all: a number for every query and key.
template <class Q>
using score_dims = dims_from<join<without<head_dim, dims_of<typename Q::dims>>, list<key<seq>>>>;
template <class Q, class K>
using scores_of = shared_of<heads, kv, Q, shares_of<K>, score_dims<Q>>;

/// A number in the accumulate type for every query.
template <class Q>
using rows_of = Tensor<accumulate_t<typename Q::element>, dims_from<without<head_dim, dims_of<typename Q::dims>>>,
                       typename Q::layout, typename Q::space>;

template <class D, class T>
using dim_missing = refuse_if<!contains<D, dims_of<typename T::dims>>, foreign_dim<D, typename T::dims>>;

/// Keys that are not called so yet.
template <class K>
using keys_missing = std::conditional_t<
    contains<seq, dims_of<typename K::dims>>,
    list<refused<because::dim_not_in_the_tensor<key<seq>>, try_<rename_<seq, key<seq>>>, typename K::dims>>,
    dim_missing<key<seq>, K>>;

/// What is wrong with the dims of queries, keys and values: a list of refusals.
template <class Q, class K, class V>
consteval auto attention_dims() {
  using no_heads = std::conditional_t<contains<heads, dims_of<typename K::dims>>, list<>, dim_missing<kv, K>>;
  using missing = join<dim_missing<seq, Q>, dim_missing<heads, Q>, dim_missing<head_dim, Q>, keys_missing<K>,
                       dim_missing<head_dim, K>, no_heads>;
  using apart = alike_of<V, K>;
  return join<missing, refuse_if<!is_accepted<apart>, apart>>{};
}

/// The verdict on the attention of queries to keys that lie here as a whole: what a rank computes alone.
template <class Q, class K, class V>
consteval auto attention_verdict() {
  using LQ = typename Q::layout;
  using LK = typename K::layout;
  using dims = decltype(attention_dims<Q, K, V>());
  if constexpr (dims::size != 0) {
    return type<front<dims>>{};
  } else {
    using some_keys = refused<because::needs_the_whole_dim<key<seq>>,
                              try_<convert_to_whole<shard_axes<LK, key<seq>>>, or_<use_ring_attention>>, LK>;
    using cut = join<refuse_if<shard_axes<LK, key<seq>>::size != 0, some_keys>, whole_dim<head_dim, LQ>,
                     whole_dim<head_dim, LK>>;
    using scores = scores_of<Q, K>;
    if constexpr (cut::size != 0) {
      return type<front<cut>>{};
    } else if constexpr (!is_accepted<scores>) {
      return type<scores>{};
    } else if constexpr (!is_accepted<map_of_reals<typename scores::is>>) {
      return type<map_of_reals<typename scores::is>>{};
    } else {
      return type<accepted<Q>>{};
    }
  }
}
template <AnyTensor Q, AnyTensor K, AnyTensor V>
using attention_of = typename decltype(attention_verdict<bare<Q>, bare<K>, bare<V>>())::is;

/// The gradient at keys or values: in the accumulate type, placed as they are; owed over the axes along which the
/// queries of other ranks have seen them too.
template <class Q, class K>
consteval auto key_gradient() {
  using shared = typename shared_gradient_of<heads, kv, typename scores_of<Q, K>::is, Q, shares_of<K>>::is;
  using T = typename decltype(renamed_unless_same<shared, kv, share_of<K>>())::is;
  return type<Tensor<accumulate_t<typename K::element>, typename K::dims, typename T::layout, typename K::space>>{};
}
template <class Q, class K>
using key_gradient_of = typename decltype(key_gradient<Q, K>())::is;

/// The verdict on a gradient of the result of an attention that a verdict allowed, and on what was saved of it.
template <class Verdict, class G, class Out, class Q>
using attention_backward_of = both_of<Verdict, both_of<alike_of<G, Q>, alike_of<Out, Q>>>;

}  // namespace meshwise::detail
