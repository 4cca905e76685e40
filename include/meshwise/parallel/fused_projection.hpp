// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "meshwise/parallel/projection.hpp"

namespace meshwise {

/// What a group of heads has in a fused projection, as a dim beside kv: its query heads, then its key, then its value.
///
/// `Dims<hidden, kv, query_key_value, head_dim>` with `Shard<kv, tp>`: each rank has the queries, keys and values of
/// its own groups, and the gathered weight does not depend on the ranks. This is not the order of all queries, then all
/// keys, then all values, of which a plain split gives the first rank queries only: checkpoints in that order are taken
/// apart and go through fuse_projections.
struct query_key_value : dim {};

namespace detail {

template <class... Ds>
consteval auto dims_with_parts(list<Ds...>) {
  return joined<std::conditional_t<std::is_same_v<Ds, kv>, list<kv, query_key_value>, list<Ds>>...>();
}
/// The fused tensor of heads like Keys.
template <class Keys>
using fused_of = Tensor<typename Keys::element, dims_from<decltype(dims_with_parts(dims_of<typename Keys::dims>{}))>,
                        typename Keys::layout, typename Keys::space>;
/// The verdict on fusing queries Q with keys and values K: a K is a Q with kv instead of heads.
template <class Q, class K>
consteval auto fuse_verdict() {
  if constexpr (!is_accepted<rename_of<Q, heads, kv>>) {
    return type<rename_of<Q, heads, kv>>{};
  } else {
    using verdict = alike_of<K, typename rename_of<Q, heads, kv>::is>;
    return type<std::conditional_t<is_accepted<verdict>, accepted<fused_of<K>>, verdict>>{};
  }
}
template <class Q, class K>
using fuse_of = typename decltype(fuse_verdict<operand<Q>, operand<K>>())::is;

/// The verdict on taking a fused tensor apart: query_key_value stands right behind kv, and is whole.
template <class Fused>
consteval auto split_verdict() {
  using dims = dims_of<typename Fused::dims>;
  if constexpr (!contains<kv, dims>) {
    return type<foreign_dim<kv, typename Fused::dims>>{};
  } else if constexpr (!contains<query_key_value, dims>) {
    return type<foreign_dim<query_key_value, typename Fused::dims>>{};
  } else {
    using keys = dims_from<without<query_key_value, dims>>;
    using ordered = dims_from<decltype(dims_with_parts(dims_of<keys>{}))>;
    using K = Tensor<typename Fused::element, keys, typename Fused::layout, typename Fused::space>;
    if constexpr (!std::is_same_v<ordered, typename Fused::dims>) {
      return type<refused<because::dims_differ, try_<give_both_the_same_dims_in_the_same_order>, typename Fused::dims,
                          ordered>>{};
    } else {
      using cut = whole_dim<query_key_value, typename Fused::layout>;
      if constexpr (cut::size != 0) {
        return type<front<cut>>{};
      } else {
        return type<rename_of<K, kv, heads>>{};
      }
    }
  }
}
template <class Fused>
using split_of = typename decltype(split_verdict<operand<Fused>>())::is;

/// Calls f(first element of a run in the fused piece, which of the three, first element in it, how many).
template <class Fused, class F>
void each_fused_run(const Fused& fused, const F& f) {
  constexpr std::size_t d = dim_index<query_key_value, Fused>;
  const std::size_t parts = fused.extents()[d], queries = parts - 2;
  const std::size_t groups = elements_before(fused, d), run = elements_after(fused, d);
  for (std::size_t i = 0; i < groups; ++i) {
    f(i * parts * run, 0, i * queries * run, queries * run);
    f((i * parts + queries) * run, 1, i * run, run);
    f((i * parts + queries + 1) * run, 2, i * run, run);
  }
}

/// Checks that the groups of a fused tensor are whole here. queries: global and local heads; shares: the same of kv.
inline void check_groups(const char* verb, std::size_t heads_all, std::size_t heads_here, std::size_t kv_all,
                         std::size_t kv_here, std::size_t parts, int rank) {
  const std::size_t queries = parts - 2;
  if (parts >= 2 && heads_all == kv_all * queries && heads_here == kv_here * queries) return;
  fail(verb, "whole groups of as many heads for each of kv = " + std::to_string(kv_all),
       "heads = " + std::to_string(heads_all) + " and " + std::to_string(parts) + " parts, here " +
           std::to_string(heads_here) + " heads and kv = " + std::to_string(kv_here),
       "choose a number of ranks that divides kv, or SeparateProjections", rank);
}

}  // namespace detail

/// Queries, keys and values, or their weights or biases, as one tensor: for each group its query heads, key and value.
///
/// q: has heads; k, v: kv instead, placed alike (of multi-head attention `rename<heads, kv>(k)`); other dims in any
/// number and order, the same. parts: 2 + heads / kv, asked for because kv may be 0. Result: kv, query_key_value in the
/// place of heads. Cost: local, one copy. Errors: groups that are not whole on a rank.
template <AnyTensor Q, AnyTensor K>
  requires detail::is_accepted<detail::fuse_of<Q, K>>
[[nodiscard]] auto fuse_projections(const Q& q, const K& k, const K& v, std::size_t parts) {
  using Fused = typename detail::fuse_of<Q, K>::is;
  detail::check_operands("fuse_projections", k, v);
  detail::check_operands("fuse_projections", k, q);
  constexpr std::size_t h = detail::dim_index<heads, Q>;
  detail::check_groups("fuse_projections", q.extents()[h], q.ranges()[h].size, k.extents()[h], k.ranges()[h].size,
                       parts, q.mesh().world().rank());
  std::array<Extent, Fused::rank> extents;
  for (std::size_t i = 0, j = 0; i < Fused::rank; ++i) {
    extents[i] = i == detail::dim_index<query_key_value, Fused> ? Extent(parts) : k.extents()[j++];
  }
  Fused fused(k.mesh(), Extents<typename Fused::dims>(extents), detail::uninitialised{});
  using E = typename Q::element;
  const E* const from[] = {q.local().data(), k.local().data(), v.local().data()};
  E* const to = detail::written(fused);
  detail::each_fused_run(fused, [&](std::size_t at, int which, std::size_t first, std::size_t n) {
    if (n != 0) std::memcpy(to + at, from[which] + first, n * sizeof(E));
  });
  return fused;
}

template <AnyTensor Q, AnyTensor K>
  requires(!detail::is_accepted<detail::fuse_of<Q, K>>)
[[nodiscard]] auto fuse_projections(const Q& q, const K& k, const K& v, std::size_t parts) -> detail::fuse_of<Q, K>;

/// The three parts of what fuse_projections gave: .q has heads, .k and .v have kv. Cost and errors: as there.
template <AnyTensor Fused>
  requires detail::is_accepted<detail::split_of<Fused>>
[[nodiscard]] auto split_projections(const Fused& fused) {
  using Q = typename detail::split_of<Fused>::is;
  using K = typename detail::rename_of<Q, heads, kv>::is;
  constexpr std::size_t d = detail::dim_index<query_key_value, Fused>, h = detail::dim_index<heads, Q>;
  const std::size_t parts = fused.extents()[d], groups = fused.extents()[h];
  const Extents<typename K::dims> extents = detail::extents_from<typename K::dims>(fused);
  std::array<Extent, Q::rank> of_queries = extents;
  of_queries[h] = parts < 2 ? 0 : groups * (parts - 2);
  K k(fused.mesh(), extents, detail::uninitialised{}), v(fused.mesh(), extents, detail::uninitialised{});
  Q q(fused.mesh(), Extents<typename Q::dims>(of_queries), detail::uninitialised{});
  detail::check_groups("split_projections", q.extents()[h], q.ranges()[h].size, groups, k.ranges()[h].size, parts,
                       fused.mesh().world().rank());
  using E = typename Fused::element;
  const E* const from = fused.local().data();
  E* const to[] = {detail::written(q), detail::written(k), detail::written(v)};
  detail::each_fused_run(fused, [&](std::size_t at, int which, std::size_t first, std::size_t n) {
    if (n != 0) std::memcpy(to[which] + first, from + at, n * sizeof(E));
  });
  return detail::QueryKeyValue<Q, K, K>{std::move(q), std::move(k), std::move(v)};
}

template <AnyTensor Fused>
  requires(!detail::is_accepted<detail::split_of<Fused>>)
[[nodiscard]] auto split_projections(const Fused& fused) -> detail::split_of<Fused>;

/// A block with one weight for queries, keys and values, split by groups over the tensor axes.
template <template <class> class Of, class E, class Grid, class Shape, template <class> class OfVector = Of>
struct FusedBlockOf : BlockFrameOf<Of, E, Grid, Shape, OfVector> {
  template <class D>
  using P = Of<detail::placed_by<E, D, Grid, detail::sharded_over<kv, typename Shape::tensor>>>;

  P<Dims<hidden, kv, query_key_value, head_dim>> projection_weight;
  P<Dims<kv, query_key_value, head_dim>> projection_bias;
};

/// Queries, keys and values by one product, for BlockShape::projection; BlockShape::keys says nothing here.
///
/// With one key for each head query_key_value is 3. Errors: a number of ranks that does not divide the groups, unless
/// these are of one head: with more ranks than heads of keys, SeparateProjections and SharedHeads.
struct FusedProjection {
  template <template <class> class Of, class E, class Grid, class Shape, template <class> class OfVector = Of>
  using BlockOf = FusedBlockOf<Of, E, Grid, Shape, OfVector>;

  template <class X, class W>
  static auto forward(const X& x, const W& w) {
    auto all = split_projections(column_linear<hidden>(x, w.projection_weight, w.projection_bias));
    auto k = rename<seq, key<seq>>(all.k), v = rename<seq, key<seq>>(all.v);
    return detail::QueryKeyValue<decltype(all.q), decltype(k), decltype(v)>{std::move(all.q), std::move(k),
                                                                            std::move(v)};
  }
  template <class G, class W>
  static auto joined(const G& g, const W& w) {
    return fuse_projections(g.q, rename<key<seq>, seq>(g.k), rename<key<seq>, seq>(g.v),
                            w.projection_weight.template extent<query_key_value>());
  }
  template <class D, class G, class W>
  static auto input_gradient(const G& g, const W& w) {
    return einsum<D>(g, w.projection_weight);
  }
  template <class G, class X, class W, class Gradients>
  static void parameter_gradients(const G& g, const X& x, const W& w, Gradients& to) {
    using Weight = std::remove_cvref_t<decltype(w.projection_weight)>;
    to.projection_weight = einsum<typename Weight::dims>(x, g);
    to.projection_bias = detail::bias_gradient<X, Weight>(g);
  }
};

}  // namespace meshwise
