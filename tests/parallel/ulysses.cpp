// SPDX-License-Identifier: Apache-2.0
#include "meshwise/parallel/ulysses.hpp"

#include <doctest/doctest.h>

#include <array>

#include "../support/sanitized.hpp"
#include "attention_support.hpp"

namespace {

using namespace attending;

template <class KeysTo, class Q, class K>
void ulysses(const Cube& mesh, const plain::AttentionSizes& z, const AnyMask& mask, double tolerance = 1e-12) {
  Problem<Q, K> p(mesh, z);
  const auto forward = ulysses_attention<cp, KeysTo>(p.q, p.k, p.v, mask, p.factor);
  const auto backward = ulysses_attention_backward(p.dout, forward, mask, p.factor);
  static_assert(std::is_same_v<decltype(forward.out), Q> && std::is_same_v<decltype(backward.q), Q>);
  struct {
    const Q& out;
    const decltype(forward.by_heads.log_sum)& log_sum;
  } results{forward.out, forward.by_heads.log_sum};
  p.check(results, backward, mask, tolerance);
}
template <class Rule, class... Ps>
using By = Over<double, Query, Shard<batch, dp>, Shard<seq, Rule>, Ps...>;
template <class Rule, class... Ps>
using KeysBy = Over<double, Keys, Shard<batch, dp>, Shard<key<seq>, Rule>, Ps...>;
using WithQueries = detail::where_queries_go;

TEST_CASE("attention by heads is attention: uneven heads and sequences, more ranks than heads, every rule") {
  for (int n = 1; n <= (building::sanitized ? 3 : 5); ++n) {
    on_cube({1, n, 1}, [n](const Cube& mesh) {
      const auto c = static_cast<std::size_t>(n);
      std::size_t turn = 0;
      for (const std::size_t length : {std::size_t{0}, std::size_t{1}, c - 1, 2 * c + 1, 4 * c}) {
        for (const AnyMask& mask : all_masks()) {
          const std::size_t own[] = {1, 2, 7, 0};  // heads that share nothing
          const plain::AttentionSizes z{1 + turn % 2, length, length, own[turn % 4], own[turn % 4], 3, 2 + turn % 2};
          ulysses<WithQueries, By<cp>, KeysBy<cp>>(mesh, z, mask);
          ulysses<WithQueries, By<Zigzag<cp>>, KeysBy<Zigzag<cp>>>(mesh, z, mask);
          // Groups stay whole where the ranks divide the heads of keys, and everybody may have all keys.
          const plain::AttentionSizes groups{1, length, length, 2 * c * (turn % 3), c * (turn % 3), 2, 2};
          ulysses<WithQueries, By<Striped<cp>>, KeysBy<Striped<cp>>>(mesh, groups, mask);
          const std::size_t shares = 1 + turn % 2;
          const plain::AttentionSizes few{1, length, length, 3 * shares, shares, 2, 3};
          ulysses<Replicate<cp>, By<Zigzag<cp>>, KeysBy<Zigzag<cp>>>(mesh, few, mask);
          ++turn;
        }
      }
    });
  }
}

TEST_CASE("attention by heads beside heads over tp and batch over dp") {
  for (const std::array<int, 3> sizes : {std::array{2, 2, 2}, std::array{1, 3, 2}}) {
    on_cube(sizes, [](const Cube& mesh) {
      const auto ranks = static_cast<std::size_t>(mesh.size<cp>() * mesh.size<tp>());
      for (const AnyMask& mask : all_masks()) {
        using Q = By<cp, Shard<heads, tp>>;
        using K = KeysBy<cp, Shard<kv, tp>>;
        ulysses<WithQueries, Q, K>(mesh, {3, 7, 7, 2 * ranks, ranks, 2, 2}, mask);
        const auto t = static_cast<std::size_t>(mesh.size<tp>());
        ulysses<Replicate<cp>, Q, K>(mesh, {3, 7, 7, 3 * t, t, 2, 2}, mask);
        using Everywhere = KeysBy<cp>;  // their gradients are owed over tp
        ulysses<Replicate<cp>, Q, Everywhere>(mesh, {2, 7, 7, 6, 2, 2, 2}, mask);
      }
    });
  }
}

TEST_CASE("attention by heads of a sequence that is cut by counts") {
  on_cube({1, 3, 1}, [](const Cube& mesh) {
    using Q = Over<double, Query, Shard<seq, Counted<cp>>>;
    using K = Over<double, Dims<batch, key<seq>, heads, head_dim>, Shard<key<seq>, Counted<cp>>>;
    using Whole = Over<double, Query>;
    using WholeK = Over<double, typename K::dims>;
    const Extent length = Extent::of_parts({4, 0, 3});
    const auto q = normals<Q>(mesh, {1, length, 4, 2}, 1), dout = normals<Q>(mesh, {1, length, 4, 2}, 2);
    const auto k = normals<K>(mesh, {1, length, 4, 2}, 3);
    const auto forward = ulysses_attention<cp>(q, k, k, CausalMask{}, 1.0);
    const auto backward = ulysses_attention_backward(dout, forward, CausalMask{}, 1.0);
    const auto whole_q = normals<Whole>(mesh, {1, 7, 4, 2}, 1), whole_dout = normals<Whole>(mesh, {1, 7, 4, 2}, 2);
    const auto whole_k = normals<WholeK>(mesh, {1, 7, 4, 2}, 3);
    const auto one = attend(whole_q, whole_k, whole_k, CausalMask{}, 1.0);
    const auto gradients = attend_backward(whole_dout, whole_q, whole_k, whole_k, one, CausalMask{}, 1.0);
    require_alike(all_of(forward.out), all_of(one.out), 1e-14, "out");
    require_alike(all_of(backward.q), all_of(gradients.q), 1e-14, "queries");
    require_alike(all_of(backward.k), all_of(gradients.k), 1e-14, "keys");
    require_alike(all_of(backward.v), all_of(gradients.v), 1e-14, "values");
  });
}

TEST_CASE("volume: four all_to_alls forward and four backward; an all_gather and a reduce_scatter of replicated keys") {
  on_cube({2, 2, 2}, [](const Cube& mesh) {
    using Q = By<Zigzag<cp>, Shard<heads, tp>>;
    using K = KeysBy<Zigzag<cp>, Shard<kv, tp>>;
    const auto n = static_cast<double>(mesh.size<cp>());
    const auto run = [&]<class To>(detail::type<To>, double heads_of_keys) {
      Problem<Q, K> p(mesh, {4, 16, 16, 8, static_cast<std::size_t>(heads_of_keys), 2, 4});
      const Traffic start = mesh.traffic<cp>();
      const auto forward = ulysses_attention<cp, To>(p.q, p.k, p.v, CausalMask{}, 1.0);
      const Traffic there = mesh.traffic<cp>() - start;
      const auto backward = ulysses_attention_backward(p.dout, forward, CausalMask{}, 1.0);
      const Traffic back = mesh.traffic<cp>() - start - there;
      require(backward.scores == forward.by_heads.scores, "scores");
      const double q_out = static_cast<double>((p.q.size() + p.dout.size()) * sizeof(double));
      const double k_v = static_cast<double>((p.k.size() + p.v.size()) * sizeof(double));
      const bool gathered = std::is_same_v<To, Replicate<cp>>;
      const double expected = (n - 1) / n * q_out + (gathered ? n - 1 : (n - 1) / n) * k_v;
      require(total(mesh, static_cast<double>(there.volume)) == expected, "forward");
      require(total(mesh, static_cast<double>(back.volume)) == expected, "backward");
      require(total(mesh, static_cast<double>(there.moved)) == expected, "moved");
    };
    run(detail::type<WithQueries>{}, 4);
    run(detail::type<Replicate<cp>>{}, 2);
  });
}

TEST_CASE("a causal mask costs all ranks the same, whatever the rule") {
  on_cube({1, 4, 1}, [](const Cube& mesh) {
    Problem<By<cp>, KeysBy<cp>> p(mesh, {1, 10, 10, 8, 4, 2, 2});
    const auto forward = ulysses_attention<cp>(p.q, p.k, p.v, CausalMask{}, 1.0);
    require(forward.by_heads.scores == 2 * 55, "two heads each");
  });
}

TEST_CASE("heads of keys that the ranks would cut apart from their groups") {
  on_cube({1, 4, 1}, [](const Cube& mesh) {
    Problem<By<cp>, KeysBy<cp>> p(mesh, {1, 4, 4, 4, 2, 2, 2});
    const std::string text =
        error_of([&] { static_cast<void>(ulysses_attention<cp>(p.q, p.k, p.v, CausalMask{}, 1.0)); });
    require(contains(text, "kv that 4 ranks divide") && contains(text, "kv = 2 for heads = 4") &&
                contains(text, "ulysses_attention<cp, Replicate<cp>>"),
            text);
    const auto all = ulysses_attention<cp, Replicate<cp>>(p.q, p.k, p.v, CausalMask{}, 1.0);
    require(all.by_heads.scores == 10, "one head each");
  });
}

}  // namespace
