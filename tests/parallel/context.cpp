// SPDX-License-Identifier: Apache-2.0
#include "meshwise/parallel/context.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>

#include "attention_support.hpp"

namespace {

using namespace attending;

template <class Q, class K>
void ring(const Cube& mesh, const plain::AttentionSizes& z, const AnyMask& mask, double tolerance = 1e-12,
          double deviation = 1) {
  Problem<Q, K> p(mesh, z, deviation);
  const auto forward = ring_attention<cp>(p.q, p.k, p.v, mask, p.factor);
  const auto backward = ring_attention_backward<cp>(p.dout, p.q, p.k, p.v, forward, mask, p.factor);
  require(forward.scores == backward.scores, "the same scores");
  p.check(forward, backward, mask, tolerance);
}

template <class E, class Rule, class... Ps>
using RingQuery = Over<E, Query, Shard<batch, dp>, Shard<seq, Rule>, Ps...>;
template <class E, class Rule, class... Ps>
using RingKeys = Over<E, Keys, Shard<batch, dp>, Shard<key<seq>, Rule>, Ps...>;

template <class Rule>
void ring_by(const Cube& mesh, const plain::AttentionSizes& z, const AnyMask& mask) {
  ring<RingQuery<double, Rule, Shard<heads, tp>>, RingKeys<double, Rule, Shard<kv, tp>>>(mesh, z, mask);
}

TEST_CASE("ring attention is attention: every rule, uneven and empty parts, shared heads, masks") {
  for (int n = 1; n <= 5; ++n) {
    on_cube({1, n, 1}, [n](const Cube& mesh) {
      const auto c = static_cast<std::size_t>(n);
      const auto masks = all_masks();
      std::size_t turn = 0;
      for (const std::size_t length : {std::size_t{0}, std::size_t{1}, c - 1, 2 * c + 1, 4 * c}) {
        for (const AnyMask& mask : masks) {
          const std::array<std::size_t, 2> counts[] = {{1, 1}, {4, 2}, {3, 1}, {2, 2}, {0, 0}};
          const auto [h, g] = counts[turn++ % 5];
          const plain::AttentionSizes z{1 + turn % 2, length, length, h, g, 3, turn % 3 == 0 ? std::size_t{2} : 3};
          ring_by<cp>(mesh, z, mask);
          ring_by<Zigzag<cp>>(mesh, z, mask);
          ring_by<Striped<cp>>(mesh, z, mask);
        }
      }
    });
  }
}

TEST_CASE("ring attention beside heads over tp and batch over dp; more ranks than heads of keys") {
  for (const std::array<int, 3> sizes : {std::array{2, 2, 2}, std::array{1, 3, 2}, std::array{3, 2, 1}}) {
    on_cube(sizes, [](const Cube& mesh) {
      const auto t = static_cast<std::size_t>(mesh.size<tp>());
      mesh.set_checks(Checks::communicating);
      for (const AnyMask& mask : all_masks()) {
        ring_by<Zigzag<cp>>(mesh, {3, 13, 13, 6 * t, 2 * t, 2, 2}, mask);
        ring_by<cp>(mesh, {1, 5, 5, t, t, 2, 2}, mask);
        // Every rank along tp has all keys: their gradients are owed over tp.
        using Q = RingQuery<double, Striped<cp>, Shard<heads, tp>>;
        using K = RingKeys<double, Striped<cp>>;
        ring<Q, K>(mesh, {2, 7, 7, 6, 3, 2, 2}, mask);
        using dK = decltype(ring_attention_backward<cp>(
                                std::declval<Q>(), std::declval<Q>(), std::declval<K>(), std::declval<K>(),
                                std::declval<Attended<Q, detail::rows_of<Q>>>(), CausalMask{}, 1.0)
                                .k);
        static_assert(std::is_same_v<dK, RingKeys<double, Striped<cp>, Partial<tp>>>);
      }
    });
  }
}

TEST_CASE("ring attention of heads that share nothing, of other orders of dims, of keys of another length") {
  on_cube({1, 3, 2}, [](const Cube& mesh) {
    using Q = Over<double, Dims<heads, seq, head_dim>, Shard<seq, Zigzag<cp>>, Shard<heads, tp>>;
    using K = Over<double, Dims<heads, head_dim, key<seq>>, Shard<key<seq>, Zigzag<cp>>, Shard<heads, tp>>;
    for (const AnyMask& mask : all_masks()) {
      const plain::AttentionSizes z{1, 11, 8, 5, 5, 3, 2};
      const auto q = normals<Q>(mesh, {5, 11, 3}, 1), dout = normals<Q>(mesh, {5, 11, 2}, 2);
      const auto k = normals<K>(mesh, {5, 3, 8}, 3), v = normals<K>(mesh, {5, 2, 8}, 4);
      const auto forward = ring_attention<cp>(q, k, v, mask, 0.7);
      const auto backward = ring_attention_backward<cp>(dout, q, k, v, forward, mask, 0.7);
      static_assert(std::is_same_v<std::remove_const_t<decltype(backward.k)>, K>);
      // The same with the dims in the order of the reference.
      const auto ordered = [](const std::vector<double>& x, std::array<std::size_t, 3> e,
                              std::array<std::size_t, 3> by) {
        std::vector<double> result;
        const std::array<std::size_t, 3> stride{e[1] * e[2], e[2], 1};
        for (std::size_t i = 0; i < e[by[0]]; ++i) {
          for (std::size_t j = 0; j < e[by[1]]; ++j) {
            for (std::size_t l = 0; l < e[by[2]]; ++l) {
              result.push_back(x[i * stride[by[0]] + j * stride[by[1]] + l * stride[by[2]]]);
            }
          }
        }
        return result;
      };
      const auto of_q = [&](const auto& x, std::size_t w) { return ordered(all_of(x), {5, 11, w}, {1, 0, 2}); };
      const auto of_k = [&](const auto& x, std::size_t w) { return ordered(all_of(x), {5, w, 8}, {2, 0, 1}); };
      plain::AttentionArrays a{of_q(q, 3), of_k(k, 3), of_k(v, 2), of_q(dout, 2), {}, {}, {}, {}, {}};
      plain::attention(
          z, [&](std::size_t s, std::size_t t) { return mask.sees(s, t); }, 0.7, a);
      require_alike(of_q(forward.out, 2), a.out, 1e-12, mask.name + ": out");
      require_alike(of_q(forward.log_sum, 1), a.log_sum, 1e-12, mask.name + ": log of sums");
      require_alike(of_q(backward.q, 3), a.dq, 1e-12, mask.name + ": queries");
      require_alike(of_k(backward.k, 3), a.dk, 1e-12, mask.name + ": keys");
      require_alike(of_k(backward.v, 2), a.dv, 1e-12, mask.name + ": values");
    }
  });
}

TEST_CASE("ring attention with more queries and keys than a tile has") {
  for (const int n : {1, 2}) {
    on_cube({1, n, 1}, [n](const Cube& mesh) {
      for (const AnyMask& mask :
           {AnyMask{"causal", CausalMask{}}, AnyMask{"window", WindowMask{150}}, AnyMask{"none", NoMask{}}}) {
        const std::size_t length = n == 1 ? 601 : 1101;
        const plain::AttentionSizes z{1, length, length, 1, 1, 2, 1};
        ring<RingQuery<double, Zigzag<cp>>, RingKeys<double, Zigzag<cp>>>(mesh, z, mask);
        if (n == 1) ring<RingQuery<float, cp>, RingKeys<float, cp>>(mesh, z, mask, 5e-5);
        if (n == 2) break;
      }
    });
  }
}

TEST_CASE("narrow elements are summed in float: no error that grows with the ring") {
  for (const int n : {1, 4}) {
    on_cube({1, n, 1}, [](const Cube& mesh) {
      for (const AnyMask& mask : all_masks()) {
        const plain::AttentionSizes z{2, 37, 37, 4, 2, 8, 8};
        ring<RingQuery<float, Zigzag<cp>>, RingKeys<float, Zigzag<cp>>>(mesh, z, mask, 2e-5);
        // The result is rounded to 8 bits once, and enters the gradients rounded.
        ring<RingQuery<bf16, Striped<cp>>, RingKeys<bf16, Striped<cp>>>(mesh, z, mask, 1.0 / 16);
      }
    });
  }
}

TEST_CASE("logits of ten thousand and more do not overflow") {
  on_cube({1, 3, 1}, [](const Cube& mesh) {
    const plain::AttentionSizes z{1, 16, 16, 2, 2, 4, 4};
    for (const AnyMask& mask : all_masks()) {
      ring<RingQuery<double, Zigzag<cp>>, RingKeys<double, Zigzag<cp>>>(mesh, z, mask, 1e-8, 100);
      Problem<RingQuery<float, Zigzag<cp>>, RingKeys<float, Zigzag<cp>>> p(mesh, z, 100);
      const auto forward = ring_attention<cp>(p.q, p.k, p.v, mask, p.factor);
      const auto backward = ring_attention_backward<cp>(p.dout, p.q, p.k, p.v, forward, mask, p.factor);
      for (const auto& values : {all_of(forward.out), all_of(backward.q), all_of(backward.k), all_of(backward.v)}) {
        for (const double value : values) require(std::isfinite(value), "finite");
      }
    }
  });
}

// Pairs of queries and keys that the ranks along cp evaluate for one head of one sequence.
template <class Rule>
std::vector<double> pairs(int n, std::size_t length) {
  std::vector<double> result(static_cast<std::size_t>(n));
  on_cube({1, n, 1}, [&](const Cube& mesh) {
    const RingQuery<float, Rule> q(mesh, {2, length, 3, 1});
    const RingKeys<float, Rule> k(mesh, {2, length, 1, 1});
    const auto forward = ring_attention<cp>(q, k, k, CausalMask{}, 1.0);
    result[static_cast<std::size_t>(mesh.coordinate<cp>())] = static_cast<double>(forward.scores) / 6;
  });
  return result;
}

TEST_CASE("a causal mask costs half the pairs; zigzag gives every rank the same number") {
  for (int n = 1; n <= 5; ++n) {
    const auto c = static_cast<std::size_t>(n);
    for (const std::size_t chunk : {1U, 3U, 150U}) {
      const std::size_t length = 2 * c * chunk;
      const auto zigzag = pairs<Zigzag<cp>>(n, length), contiguous = pairs<cp>(n, length);
      const auto striped = pairs<Striped<cp>>(n, length);
      const auto sum = [](const std::vector<double>& x) {
        double all = 0;
        for (const double value : x) all += value;
        return all;
      };
      const double all = static_cast<double>(length * (length + 1) / 2);
      CHECK(sum(zigzag) == all);
      CHECK(sum(contiguous) == all);
      CHECK(sum(striped) == all);
      const std::size_t part = length / c;
      for (std::size_t i = 0; i < c; ++i) {
        CHECK(zigzag[i] == static_cast<double>(2 * c * chunk * chunk + chunk));
        CHECK(contiguous[i] == static_cast<double>(i * part * part + part * (part + 1) / 2));
        CHECK(2 * striped[i] ==
              static_cast<double>(c * part * part + part * (2 * i + 2)) - static_cast<double>(c * part));
      }
    }
  }
}

TEST_CASE("volume: keys and values once forward, once backward, and their gradients in the accumulate type") {
  for (const std::array<int, 3> sizes : {std::array{1, 1, 1}, std::array{1, 3, 1}, std::array{2, 2, 2}}) {
    on_cube(sizes, [](const Cube& mesh) {
      const auto check = [&]<class E>(detail::type<E>) {
        using Q = RingQuery<E, Zigzag<cp>, Shard<heads, tp>>;
        using K = RingKeys<E, Zigzag<cp>, Shard<kv, tp>>;
        const auto t = static_cast<std::size_t>(mesh.size<tp>());
        Problem<Q, K> p(mesh, {3, 11, 11, 4 * t, 2 * t, 3, 5});
        const Traffic start = mesh.traffic<cp>(), others = mesh.traffic<dp>() + mesh.traffic<tp>();
        const auto forward = ring_attention<cp>(p.q, p.k, p.v, CausalMask{}, 1.0);
        const Traffic there = mesh.traffic<cp>() - start;
        const auto backward = ring_attention_backward<cp>(p.dout, p.q, p.k, p.v, forward, CausalMask{}, 1.0);
        const Traffic back = mesh.traffic<cp>() - start - there;
        require(mesh.traffic<dp>() + mesh.traffic<tp>() == others, "nothing over other axes");
        require(backward.scores == forward.scores, "scores");
        const double hops = mesh.size<cp>() - 1, elements = static_cast<double>(p.k.size() + p.v.size());
        require(total(mesh, static_cast<double>(there.volume)) == hops * elements * sizeof(E), "forward");
        require(
            total(mesh, static_cast<double>(back.volume)) == hops * elements * (sizeof(E) + sizeof(accumulate_t<E>)),
            "backward");
        require(there.moved == there.volume && back.moved == back.volume, "moved");
      };
      check(detail::type<double>{});
      check(detail::type<bf16>{});
    });
  }
}

TEST_CASE("memory: the sums, and at most two pieces of keys and values besides the own; one tile of workspace") {
  for (const int n : {1, 2, 3, 5}) {
    on_cube({1, n, 1}, [n](const Cube& mesh) {
      using Q = RingQuery<float, Zigzag<cp>>;
      using K = RingKeys<float, Zigzag<cp>>;
      const auto c = static_cast<std::size_t>(n);
      const Extents<Query> eq{1, 24 * c, 4, 16};
      const Extents<Keys> ek{1, 24 * c, 2, 16};
      const Q q = normals<Q>(mesh, eq, 1), dout = normals<Q>(mesh, eq, 2);
      const K k = normals<K>(mesh, ek, 3), v = normals<K>(mesh, ek, 4);
      const Heap& heap = mesh.memory<Host>();
      const std::size_t before = heap.usage(Category::activations).peak;
      const std::size_t queries = 24 * 4 * 16 * sizeof(float), row = 24 * 4 * sizeof(float);
      const std::size_t pieces = 2 * 24 * 2 * 16 * sizeof(float);  // of keys and values
      const auto forward = ring_attention<cp>(q, k, v, CausalMask{}, 0.25);
      const std::size_t after = heap.usage(Category::activations).peak;
      require(after - before == queries + 2 * row + std::min(c - 1, std::size_t{2}) * pieces, "forward");
      const std::size_t kept = heap.usage(Category::activations).current;
      require(kept - before == queries + row, "what is kept for the backward");
      const auto backward = ring_attention_backward<cp>(dout, q, k, v, forward, CausalMask{}, 0.25);
      // Of keys and values two besides the own; of gradients those of the own and of the present one, one that leaves
      // and one that arrives.
      const std::size_t most[] = {0, 1, 4, 5, 6, 6};
      require(heap.usage(Category::activations).peak - kept == queries + row + most[c] * pieces, "backward");
      require(heap.usage(Category::activations).current - kept == queries + pieces, "the gradients remain");
      require(heap.usage(Category::workspace).peak == 2 * 24 * 24 * sizeof(float), "two tiles of scores");
      require(heap.usage(Category::workspace).current == 0, "workspace");
      static_cast<void>(backward);
    });
  }
}

TEST_CASE("heads over one axis, a ring over the other: Ulysses inside, ring outside") {
  on_cube({1, 3, 2}, [](const Cube& mesh) {
    using Q = Over<double, Query, Shard<seq, Zigzag<cp>, tp>>;
    using K = Over<double, Keys, Shard<key<seq>, Zigzag<cp>, tp>>;
    for (const AnyMask& mask : all_masks()) {
      Problem<Q, K> p(mesh, {2, 13, 13, 5, 5, 2, 2});
      const auto q = convert<Shard<heads, tp>>(p.q), dout = convert<Shard<heads, tp>>(p.dout);
      const auto k = convert<Shard<kv, tp>>(p.k), v = convert<Shard<kv, tp>>(p.v);
      const auto forward = ring_attention<cp>(q, k, v, mask, p.factor);
      const auto backward = ring_attention_backward<cp>(dout, q, k, v, forward, mask, p.factor);
      static_assert(std::is_same_v<detail::bare<decltype(backward_to<Q>(forward.out))>, Q>);
      p.check(forward, backward, mask, 1e-12);
    }
  });
}

TEST_CASE("gathered keys: attend to all of them with the own queries, and give the gradients back") {
  on_cube({2, 4, 1}, [](const Cube& mesh) {
    using Q = RingQuery<double, Zigzag<cp>>;
    using K = RingKeys<double, Zigzag<cp>>;
    for (const AnyMask& mask : all_masks()) {
      Problem<Q, K> p(mesh, {3, 11, 11, 4, 2, 2, 3});
      const auto k = convert<Replicate<cp>>(p.k), v = convert<Replicate<cp>>(p.v);
      const auto forward = attend(p.q, k, v, mask, p.factor);
      const auto backward = attend_backward(p.dout, p.q, k, v, forward, mask, p.factor);
      static_assert(std::is_same_v<decltype(backward.k), Over<double, Keys, Shard<batch, dp>, Partial<cp>>>);
      const AttentionBackward<Q, K, K> back{backward.q, backward_to<K>(backward.k), backward_to<K>(backward.v)};
      p.check(forward, back, mask, 1e-12);  // two reduce_scatters
    }
  });
}

TEST_CASE("extents that do not fit, and a mask that throws on one rank") {
  on_cube({1, 2, 1}, [](const Cube& mesh) {
    using Q = RingQuery<float, cp>;
    using K = RingKeys<float, cp>;
    const auto text = [&](const Extents<Query>& q, const Extents<Keys>& k, const Extents<Keys>& v) {
      return error_of(
          [&] { static_cast<void>(ring_attention<cp>(Q(mesh, q), K(mesh, k), K(mesh, v), CausalMask{}, 1.0)); });
    };
    require(text({1, 4, 2, 3}, {1, 4, 2, 3}, {1, 4, 2, 5}).empty(), "values of another width");
    require(contains(text({1, 4, 2, 3}, {1, 4, 2, 4}, {1, 4, 2, 4}), "ring_attention (rank "), "width");
    require(contains(text({1, 4, 2, 3}, {1, 4, 2, 3}, {1, 5, 2, 3}), "key<seq> = 5"), "values of other keys");
    require(contains(text({1, 4, 3, 3}, {1, 4, 2, 3}, {1, 4, 2, 3}), "a multiple of kv = 2"), "heads");
    const Q q(mesh, {1, 4, 2, 3});
    const K k(mesh, {1, 4, 2, 3});
    const auto forward = ring_attention<cp>(q, k, k, CausalMask{}, 1.0);
    const std::string other = error_of([&] {
      static_cast<void>(ring_attention_backward<cp>(Q(mesh, {1, 4, 2, 4}), q, k, k, forward, CausalMask{}, 1.0));
    });
    require(contains(other, "ring_attention_backward (rank ") && contains(other, "head_dim = 4"), other);
  });
  std::string what;
  try {
    on_cube({1, 3, 1}, [](const Cube& mesh) {
      const RingQuery<float, cp> q(mesh, {1, 6, 2, 3});
      const RingKeys<float, cp> k(mesh, {1, 6, 2, 3});
      static_cast<void>(ring_attention<cp>(
          q, k, k,
          [](std::size_t query) {
            if (query == 3) throw std::runtime_error("no such query");
            return Range{0, query + 1};
          },
          1.0));
    });
  } catch (const std::exception& error) {
    what = error.what();
  }
  CHECK(what.find("no such query") != std::string::npos);
}

}  // namespace
