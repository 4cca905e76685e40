// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/attend.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "meshwise/tensor/attended.hpp"
#include "meshwise/tensor/attention.hpp"
#include "meshwise/tensor/softmax.hpp"
#include "support.hpp"

namespace test {
namespace {

using Query = Dims<batch, seq, heads, head_dim>;
using Key = Dims<batch, key<seq>, kv, head_dim>;
using Scores = Dims<batch, heads, seq, key<seq>>;
template <class E, class... Ps>
using Q = Tensor<E, Query, On<Ps...>>;
template <class E, class... Ps>
using K = Tensor<E, Key, On<Ps...>>;

template <class QT, class KT, class VT = KT>
concept can_attend = requires(const QT& q, const KT& k, const VT& v) {
  attend(q, k, v, CausalMask{}, 1.0);
};
static_assert(can_attend<Q<float>, K<float>> && can_attend<Q<bf16, Shard<heads, tp>>, K<bf16, Shard<kv, tp>>>);
static_assert(can_attend<Q<float, Shard<heads, dp, tp>>, K<float, Shard<kv, dp>>>, "more ranks than heads of keys");
static_assert(can_attend<Q<float, Shard<seq, Zigzag<dp>>, Shard<heads, tp>>, K<float>>, "queries of a part");
static_assert(!can_attend<Q<float>, K<float, Shard<key<seq>, tp>>>, "keys of a part");
static_assert(!can_attend<Q<float>, K<float>, K<float, Shard<kv, tp>>>, "values elsewhere");
static_assert(!can_attend<Q<float>, K<float, Shard<kv, tp>>>, "heads without their keys");
static_assert(!can_attend<Q<float, Shard<head_dim, tp>>, K<float, Shard<head_dim, tp>>>, "scores that are owed");
static_assert(!can_attend<Q<float, Partial<tp>>, K<float>> && !can_attend<Q<float>, K<float, Partial<tp>>>);
static_assert(!can_attend<Q<int>, K<int>> && !can_attend<Q<float>, K<double>>);
static_assert(!can_attend<Q<float, Shard<batch, dp>>, K<float>>, "sequences without their keys");
static_assert(!can_attend<K<float>, K<float>> && !can_attend<Q<float>, Q<float>>);
static_assert(can_attend<Tensor<float, Dims<seq, heads, batch, head_dim>, On<>>,
                         Tensor<float, Dims<key<seq>, head_dim, heads>, On<>>>,
              "keys that all sequences share");
static_assert(!can_attend<Tensor<float, Dims<seq, heads, head_dim>, On<>>, K<float>>,
              "keys of sequences, queries of one");

template <class Forward, class Backward>
struct Results {
  Forward forward;
  Backward backward;
};
template <class QT, class KT, class M>
auto both(const Rank& rank, const Extents<Query>& eq, const Extents<Key>& ek, const M& mask, double factor) {
  const auto q = rank.reals<QT>(eq, 1), dout = rank.reals<QT>(eq, 2);
  const auto k = rank.reals<KT>(ek, 3), v = rank.reals<KT>(ek, 4);
  auto forward = attend(q, k, v, mask, factor);
  auto backward = attend_backward(dout, q, k, v, forward, mask, factor);
  return Results<decltype(forward), decltype(backward)>{forward, backward};
}
// Sums of exp(score): 0 for who sees nothing, where the logarithm is infinite.
template <class T>
std::vector<double> sums(const Rank& rank, const T& log_sum) {
  std::vector<double> result = rank.denoted(log_sum);
  for (double& value : result) value = std::exp(value);
  return result;
}
template <class Found, class Expected>
void require_same(const Rank& rank, const Found& x, const Expected& y, double tolerance, const std::string& what) {
  require_close(rank.denoted(x.forward.out), rank.denoted(y.forward.out), tolerance, what + " out");
  require_close(sums(rank, x.forward.log_sum), sums(rank, y.forward.log_sum), tolerance, what + " sums");
  require_close(rank.denoted(x.backward.q), rank.denoted(y.backward.q), tolerance, what + " dq");
  require_close(rank.denoted(x.backward.k), rank.denoted(y.backward.k), tolerance, what + " dk");
  require_close(rank.denoted(x.backward.v), rank.denoted(y.backward.v), tolerance, what + " dv");
}

TEST_CASE("attention is the composition of its parts, of their gradients too") {
  on_grid({1, 1}, [](const Rank& rank) {
    for (const std::size_t length : {0U, 1U, 5U, 140U, 530U}) {
      if (length == 530 && !full()) continue;
      const Extents<Query> eq{2, length, 4, 3};
      const Extents<Key> ek{2, length, 2, 3};
      const auto q = rank.reals<Q<double>>(eq, 1), dout = rank.reals<Q<double>>(eq, 2);
      const auto k = rank.reals<K<double>>(ek, 3), v = rank.reals<K<double>>(ek, 4);
      const auto p = causal_softmax<seq>(shared_einsum<Scores, heads, kv>(q, k), 0.7);
      const auto out = shared_einsum<Query, heads, kv>(p, v);
      const auto ds = softmax_backward<key<seq>>(shared_einsum<Scores, heads, kv>(dout, v), p, 0.7);
      const auto found = both<Q<double>, K<double>>(rank, eq, ek, CausalMask{}, 0.7);
      require_close(rank.denoted(found.forward.out), rank.denoted(out), 1e-13, "out");
      const auto dq = shared_einsum<Query, heads, kv>(ds, k);
      require_close(rank.denoted(found.backward.q), rank.denoted(dq), 1e-13, "dq");
      const auto dk = shared_gradient<heads, kv>(ds, q, k), dv = shared_gradient<heads, kv>(p, dout, v);
      require_close(rank.denoted(found.backward.k), rank.denoted(dk), 1e-12, "dk");
      require_close(rank.denoted(found.backward.v), rank.denoted(dv), 1e-12, "dv");
      const auto scores = 8 * length * (length + 1) / 2;
      require(found.forward.scores == scores && found.backward.scores == scores, "half of all pairs");
    }
  });
}

TEST_CASE("any placement of batch, heads and queries") {
  for (const GridSize size : few_grids) {
    on_grid(size, [](const Rank& rank) {
      const auto n = static_cast<std::size_t>(rank.mesh.size<dp>() * rank.mesh.size<tp>());
      const Extents<Query> eq{3, 7, 6 * n, 2};
      const Extents<Key> ek{3, 7, 2 * n, 2};
      const auto law = [&](const auto& mask) {
        const auto one = both<Q<double>, K<double>>(rank, eq, ek, mask, 0.5);
        require_same(rank,
                     both<Q<double, Shard<batch, dp>, Shard<heads, tp>>, K<double, Shard<batch, dp>, Shard<kv, tp>>>(
                         rank, eq, ek, mask, 0.5),
                     one, 1e-13, "batch and heads:");
        const auto parts = both<Q<double, Shard<seq, Zigzag<dp>>, Shard<heads, tp>>, K<double, Shard<kv, tp>>>(
            rank, eq, ek, mask, 0.5);
        static_assert(std::is_same_v<decltype(parts.backward.k), K<double, Partial<dp>, Shard<kv, tp>>>);
        require_same(rank, parts, one, 1e-13, "queries and heads:");
        const auto more = both<Q<double, Shard<heads, dp, tp>>, K<double, Shard<kv, dp>>>(rank, eq, ek, mask, 0.5);
        static_assert(std::is_same_v<decltype(more.backward.v), K<double, Shard<kv, dp>, Partial<tp>>>);
        require_same(rank, more, one, 1e-13, "more ranks than heads of keys:");
      };
      law(CausalMask{});
      law(WindowMask{2});
      law([](std::size_t q) { return q % 2 == 0 ? Range{} : Range{1, 4}; });
    });
  }
}

TEST_CASE("narrow elements: computed in float, rounded once; infinite where no key is seen") {
  on_grid({1, 2}, [](const Rank& rank) {
    const Extents<Query> eq{1, 150, 2, 16};
    const Extents<Key> ek{1, 150, 2, 16};
    const auto check = [&]<class E>(detail::type<E>) {
      using QE = Q<E, Shard<heads, tp>>;
      using KE = K<E, Shard<kv, tp>>;
      const auto q = rank.integers<QE>(eq, 1);  // exact in every element
      const auto k = rank.integers<KE>(ek, 3), v = rank.integers<KE>(ek, 4);
      const auto out = attend(q, k, v, CausalMask{}, 0.002);
      static_assert(std::is_same_v<typename decltype(out.log_sum)::element, float>);
      const auto wide = attend(rank.integers<Q<double>>(eq, 1), rank.integers<K<double>>(ek, 3),
                               rank.integers<K<double>>(ek, 4), CausalMask{}, 0.002);
      const double unit = sizeof(E) == 2 ? 1.0 / 256 : 1e-5;
      require_close(rank.denoted(out.out), rank.denoted(wide.out), unit, "out");
      require_close(rank.denoted(out.log_sum), rank.denoted(wide.log_sum), 1e-5, "log of sums");
      const auto nothing = attend(q, k, v, WindowMask{0}, 1.0);
      for (const auto value : nothing.out.local()) require(value == E(0), "zeros");
      for (const float value : nothing.log_sum.local()) {
        require(value == -std::numeric_limits<float>::infinity(), "infinite");
      }
      require(nothing.scores == 0, "nothing to do");
    };
    check(detail::type<float>{});
    check(detail::type<bf16>{});
    check(detail::type<fp16>{});
  });
}

TEST_CASE("a NaN stays in the rows that see it") {
  on_grid({1, 1}, [](const Rank& rank) {
    auto k = rank.reals<K<double>>({1, 4, 1, 2}, 3);
    const auto v = rank.reals<K<double>>({1, 4, 1, 2}, 4);
    const auto q = rank.reals<Q<double>>({1, 4, 1, 2}, 1);
    k.mutable_local()[4] = std::numeric_limits<double>::quiet_NaN();  // key 2
    const auto out = attend(q, k, v, CausalMask{}, 1.0);
    for (std::size_t i = 0; i < 8; ++i) require(std::isnan(out.out.local()[i]) == (i >= 4), "rows 2 and 3");
  });
}

}  // namespace
}  // namespace test
