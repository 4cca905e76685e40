// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/attention.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "meshwise/tensor/softmax.hpp"
#include "support.hpp"

namespace test {
namespace {

template <class E, class D, class... Ps>
using T = Tensor<E, D, On<Ps...>>;
template <class T1, class T2>
inline constexpr bool same = std::is_same_v<std::remove_const_t<T1>, T2>;

using Query = Dims<batch, seq, heads, head_dim>;
using Key = Dims<batch, key<seq>, kv, head_dim>;
using Scores = Dims<batch, heads, seq, key<seq>>;

template <class A, class B>
concept can_score = requires(const A& a, const B& b) {
  shared_einsum<Scores, heads, kv>(a, b);
};
template <class A, class B, class V>
concept can_pull_back = requires(const A& a, const B& b, const V& v) {
  shared_gradient<heads, kv>(a, b, v);
};
template <class... Ps>
using Q = T<double, Query, Ps...>;
template <class... Ps>
using K = T<double, Key, Ps...>;
template <class... Ps>
using P = T<double, Scores, Ps...>;

static_assert(can_score<Q<>, K<>> && can_score<Q<Shard<heads, tp>>, K<Shard<kv, tp>>>);
static_assert(can_score<Q<Shard<heads, dp, tp>>, K<Shard<kv, dp>>>, "more ranks than heads of keys");
static_assert(can_score<Q<Shard<heads, tp>>, K<>>, "keys that everybody has");
static_assert(can_score<Q<Shard<batch, dp>, Shard<heads, tp>>, K<Shard<batch, dp>, Shard<kv, tp>>>);
static_assert(can_score<Q<Shard<seq, dp>, Shard<heads, tp>>, K<Shard<kv, tp>>>, "queries of a part of the sequence");
static_assert(can_score<Q<Shard<seq, Zigzag<dp>>, Shard<heads, Chunked<tp>>>, K<Shard<kv, Chunked<tp>>>>);
static_assert(!can_score<Q<Shard<heads, Chunked<tp>>>, K<Shard<kv, tp>>>, "cut by another rule");
static_assert(!can_score<Q<>, K<Shard<kv, tp>>>, "heads without their keys");
static_assert(!can_score<Q<Shard<heads, dp, tp>>, K<Shard<kv, tp>>>, "cut by the minor axis");
static_assert(!can_score<Q<Shard<heads, tp>>, K<Shard<kv, dp>>>);
static_assert(!can_score<Q<Shard<heads, dp, tp>>, K<Shard<kv, dp>, Shard<head_dim, tp>>>, "one axis, two uses");
static_assert(!can_score<Q<Shard<heads, tp>>, K<Shard<kv, tp>, Partial<dp, Max>>>);
static_assert(!can_score<Q<Shard<head_dim, tp>>, K<>>, "a sum over a dim that one of them has a part of");
static_assert(!can_score<Q<>, T<double, Dims<batch, key<seq>, heads, head_dim>>>, "no shared heads");
static_assert(!can_score<T<double, Key>, K<>>, "no heads");
static_assert(can_pull_back<P<Shard<heads, tp>>, Q<Shard<heads, tp>>, K<Shard<kv, tp>>>);
static_assert(!can_pull_back<P<Shard<heads, tp>>, Q<>, K<Shard<kv, tp>>>);
static_assert(!can_pull_back<P<>, Q<>, K<Shard<kv, tp>>>);

struct Sizes {
  std::size_t b, s, h, k, d;  // batch, sequence, heads, heads of keys, their dim
};

/// An array [b, x, y, z] of one operand.
struct Array {
  std::vector<double> values;
  std::array<std::size_t, 4> e;
  double& at(std::size_t i, std::size_t j, std::size_t k, std::size_t l) {
    return values[((i * e[1] + j) * e[2] + k) * e[3] + l];
  }
};
template <class X>
Array array_of(const Rank& rank, const X& x) {
  return {rank.denoted(x), {x.extents()[0], x.extents()[1], x.extents()[2], x.extents()[3]}};
}

/// Calls f(b, h, s, t, d, share) for all products of attention.
template <class F>
void products(const Sizes& z, const F& f) {
  for (std::size_t b = 0; b < z.b; ++b) {
    for (std::size_t h = 0; h < z.h; ++h) {
      for (std::size_t s = 0; s < z.s; ++s) {
        for (std::size_t t = 0; t < z.s; ++t) {
          for (std::size_t d = 0; d < z.d; ++d) f(b, h, s, t, d, h / (z.h / z.k));
        }
      }
    }
  }
}

/// The six products of grouped-query attention in layouts for the heads and what they share, against loops.
template <class HeadShard, class KeyShard, class Owed>
void attention(const Rank& rank, const Sizes& z) {
  using Heads = detail::list<HeadShard>;
  using E = double;
  using Qt = Tensor<E, Query, detail::layout_from<Grid, Heads>>;
  using Kt = Tensor<E, Key, detail::layout_from<Grid, KeyShard>>;
  using Pt = Tensor<E, Scores, detail::layout_from<Grid, Heads>>;
  const auto q = rank.integers<Qt>({z.b, z.s, z.h, z.d}, 1), dout = rank.integers<Qt>({z.b, z.s, z.h, z.d}, 2);
  const auto k = rank.integers<Kt>({z.b, z.s, z.k, z.d}, 3), v = rank.integers<Kt>({z.b, z.s, z.k, z.d}, 4);
  const auto p = rank.integers<Pt>({z.b, z.h, z.s, z.s}, 5);

  const auto scores = shared_einsum<Scores, heads, kv>(q, k);
  const auto out = shared_einsum<Query, heads, kv>(p, v);
  const auto dk = shared_gradient<heads, kv>(p, q, k);
  const auto dv = shared_gradient<heads, kv>(p, dout, v);
  static_assert(same<decltype(scores), Pt> && same<decltype(out), Qt>);
  using Dk = Tensor<E, Key, detail::layout_from<Grid, detail::join<KeyShard, Owed>>>;
  static_assert(same<decltype(dk), Dk> && same<decltype(dv), Dk>);

  Array aq = array_of(rank, q), ak = array_of(rank, k), ap = array_of(rank, p), av = array_of(rank, v);
  Array ado = array_of(rank, dout);
  Array ws{std::vector<double>(p.size()), ap.e}, wo{std::vector<double>(q.size()), aq.e};
  Array wk{std::vector<double>(k.size()), ak.e}, wv = wk;
  products(z, [&](std::size_t b, std::size_t h, std::size_t s, std::size_t t, std::size_t d, std::size_t share) {
    ws.at(b, h, s, t) += aq.at(b, s, h, d) * ak.at(b, t, share, d);
    wo.at(b, s, h, d) += ap.at(b, h, s, t) * av.at(b, t, share, d);
    wk.at(b, t, share, d) += ap.at(b, h, s, t) * aq.at(b, s, h, d);
    wv.at(b, t, share, d) += ap.at(b, h, s, t) * ado.at(b, s, h, d);
  });
  require_equal(rank.denoted(scores), ws.values, "scores");
  require_equal(rank.denoted(out), wo.values, "weighted values");
  require_equal(rank.denoted(dk), wk.values, "gradient of the keys");
  require_equal(rank.denoted(dv), wv.values, "gradient of the values");
}

using None = detail::list<>;

TEST_CASE("heads and their keys on the same ranks, or keys that everybody has") {
  for (const GridSize size : {GridSize{1, 1}, GridSize{1, 2}, GridSize{1, 3}, GridSize{2, 2}, GridSize{1, 4}}) {
    on_grid(size, [](const Rank& rank) {
      const auto n = static_cast<std::size_t>(rank.mesh.size<tp>());
      for (const std::size_t group : {1U, 2U, 5U}) {
        for (const std::size_t shares : {0U, 1U, 2U, 3U}) {
          const Sizes z{2, 3, shares * n * group, shares * n, 2};
          attention<Shard<heads, tp>, detail::list<Shard<kv, tp>>, None>(rank, z);
          // Keys need not be cut where heads are: any number of heads, cut inside groups.
          const Sizes any{1, 2, shares * group, shares, 3};
          attention<Shard<heads, tp>, None, detail::list<Partial<tp>>>(rank, any);
        }
      }
      // As many heads as shares may be cut anywhere.
      attention<Shard<heads, tp>, detail::list<Shard<kv, tp>>, None>(rank, {1, 3, 5, 5, 2});
      attention<Shard<heads, dp, tp>, detail::list<Shard<kv, dp, tp>>, None>(rank, {2, 2, 7, 7, 1});
    });
  }
}

TEST_CASE("more ranks than heads of keys: the heads over two axes, the keys over the first one") {
  for (const GridSize size : {GridSize{1, 2}, GridSize{2, 2}, GridSize{2, 3}, GridSize{3, 2}, GridSize{4, 1}}) {
    on_grid(size, [](const Rank& rank) {
      const auto to = static_cast<std::size_t>(rank.mesh.size<dp>());
      // Groups of 1 leave ranks of tp without heads; groups of 5 are cut unevenly; two shares per rank of dp are cut
      // between and inside groups.
      for (const std::size_t group : {1U, 2U, 3U, 5U}) {
        for (const std::size_t shares : {1U, 2U}) {
          attention<Shard<heads, dp, tp>, detail::list<Shard<kv, dp>>, detail::list<Partial<tp>>>(
              rank, {2, 2, to * shares * group, to * shares, 2});
        }
      }
    });
  }
}

TEST_CASE("one after the other: the attention of a rank's heads is that of the whole") {
  for (const GridSize size : {GridSize{1, 1}, GridSize{1, 2}, GridSize{2, 2}, GridSize{3, 1}}) {
    on_grid(size, [](const Rank& rank) {
      // Batch over dp, heads over tp, queries and keys of the whole sequence.
      const Extents<Query> eq{3, 5, 4, 2};
      const Extents<Key> ek{3, 5, 2, 2};
      const auto run = [&](const auto& q, const auto& k, const auto& v) {
        return shared_einsum<Query, heads, kv>(causal_softmax<seq>(shared_einsum<Scores, heads, kv>(q, k), 0.7), v);
      };
      const auto whole = rank.denoted(run(rank.reals<Q<>>(eq, 1), rank.reals<K<>>(ek, 2), rank.reals<K<>>(ek, 3)));
      using Qc = Q<Shard<batch, dp>, Shard<heads, tp>>;
      using Kc = K<Shard<batch, dp>, Shard<kv, tp>>;
      const auto out = run(rank.reals<Qc>(eq, 1), rank.reals<Kc>(ek, 2), rank.reals<Kc>(ek, 3));
      static_assert(same<decltype(out), Qc>);
      require_close(rank.denoted(out), whole, 1e-13, "over batch and heads");
      using Qs = Q<Shard<seq, dp>, Shard<heads, tp>>;
      using Ks = K<Shard<kv, tp>>;
      const auto part = run(rank.reals<Qs>(eq, 1), rank.reals<Ks>(ek, 2), rank.reals<Ks>(ek, 3));
      static_assert(same<decltype(part), Qs>);
      require_close(rank.denoted(part), whole, 1e-13, "over queries and heads");
      using Qz = Q<Shard<seq, Zigzag<dp>>, Shard<heads, Chunked<tp>>>;
      using Kz = K<Shard<kv, Chunked<tp>>>;
      if (rank.mesh.size<tp>() <= 2) {  // chunks of two heads share one, or all of them
        const auto folded = run(rank.reals<Qz>(eq, 1), rank.reals<Kz>(ek, 2), rank.reals<Kz>(ek, 3));
        static_assert(same<decltype(folded), Qz>);
        require_close(rank.denoted(folded), whole, 1e-13, "queries from both ends");
      }
    });
  }
}

TEST_CASE("float is exact for small integers, bf16 rounds once") {
  on_grid({2, 2}, [](const Rank& rank) {
    const auto check = [&]<class E>(detail::type<E>) {
      const auto q = rank.integers<T<E, Query, Shard<heads, dp, tp>>>({1, 2, 6, 3}, 1);
      const auto k = rank.integers<T<E, Key, Shard<kv, dp>>>({1, 2, 2, 3}, 2);
      const auto wide_q = rank.integers<T<double, Query, Shard<heads, dp, tp>>>({1, 2, 6, 3}, 1);
      const auto wide_k = rank.integers<T<double, Key, Shard<kv, dp>>>({1, 2, 2, 3}, 2);
      const double unit = sizeof(E) == 2 ? 1.0 / 256 : 0;
      require_close(rank.denoted(shared_einsum<Scores, heads, kv>(q, k)),
                    rank.denoted(shared_einsum<Scores, heads, kv>(wide_q, wide_k)), unit, name_of<E>());
    };
    check(detail::type<float>{});
    check(detail::type<bf16>{});
  });
}

TEST_CASE("heads that are no multiple, ranks that cut groups apart, and extents that differ are errors") {
  on_grid({1, 2}, [](const Rank& rank) {
    const auto text = [&](std::size_t h, std::size_t k) {
      return error_of([&] {
        static_cast<void>(shared_einsum<Scores, heads, kv>(Q<Shard<heads, tp>>(rank.mesh, {1, 2, h, 3}),
                                                           K<Shard<kv, tp>>(rank.mesh, {1, 2, k, 3})));
      });
    };
    require(contains(text(5, 2), "shared_einsum (rank ") && contains(text(5, 2), "a multiple of ") &&
                contains(text(5, 2), "kv = 2") && contains(text(5, 2), "heads = 5"),
            text(5, 2));
    require(contains(text(6, 3), "whole groups of 2 heads") && contains(text(6, 3), "kv = 3 over 2 ranks"), text(6, 3));
    require(contains(text(1, 0), "a multiple of "), text(1, 0));
    require(text(0, 0).empty() && text(0, 2).empty() && text(3, 3).empty(), "legal");
    const std::string apart = error_of([&] {
      static_cast<void>(shared_gradient<heads, kv>(P<Shard<heads, tp>>(rank.mesh, {1, 4, 2, 2}),
                                                   Q<Shard<heads, tp>>(rank.mesh, {1, 2, 6, 3}),
                                                   K<Shard<kv, tp>>(rank.mesh, {1, 2, 2, 3})));
    });
    require(contains(apart, "shared_gradient") && contains(apart, "= 4 as in") && contains(apart, "= 6 in"), apart);
  });
}

}  // namespace
}  // namespace test
