// SPDX-License-Identifier: Apache-2.0
#include "meshwise/parallel/tensor.hpp"

#include <doctest/doctest.h>

#include "support.hpp"

namespace {

using namespace test;

template <class D, class... Ps>
using On = Tensor<double, D, Layout<Grid, Ps...>>;
using X = On<Dims<batch, seq, hidden>, Shard<batch, dp>>;
using H = On<Dims<batch, seq, ffn>, Shard<batch, dp>, Shard<ffn, tp>>;
using Up = On<Dims<hidden, ffn>, Shard<ffn, tp>>;
using UpBias = On<Dims<ffn>, Shard<ffn, tp>>;
using Down = On<Dims<ffn, hidden>, Shard<ffn, tp>>;
using DownBias = On<Dims<hidden>>;
using Sequence = On<Dims<batch, seq, hidden>, Shard<batch, dp>, Shard<seq, tp>>;

// The bias belongs after the sum: it cannot be added to the partial products of a row-parallel layer.
using Product = decltype(contract<ffn>(std::declval<const H&>(), std::declval<const Down&>()));
static_assert(std::is_same_v<Product, On<Sequence::dims, Shard<batch, dp>, Partial<tp>>>);
static_assert(!detail::is_accepted<detail::elementwise_of<Product, DownBias, detail::Combining::additive>>);
// An input that is split by its input dim is no input of a column-parallel layer.
using Split = On<Dims<batch, seq, hidden>, Shard<batch, dp>, Shard<hidden, tp>>;
static_assert(!detail::is_accepted<detail::contract_of<Split, Up, hidden>>);

constexpr std::size_t sizes[] = {0, 1, 2, 3, 5, 7, 8};

struct Sizes {
  std::size_t b, s, h, f;
};

template <class T>
void same(const T& found, const std::vector<double>& expected, const char* what) {
  require_near(whole(found), expected, 1e-13, what, 8.0);
}

void column_as_dense(const Grid& mesh, const Sizes& z, std::uint64_t seed) {
  const auto x = random<X>(mesh, {z.b, z.s, z.h}, seed);
  const auto w = random<Up>(mesh, {z.h, z.f}, seed + 1);
  const auto b = random<UpBias>(mesh, {z.f}, seed + 2);
  const auto dy = random<H>(mesh, {z.b, z.s, z.f}, seed + 3);
  const std::size_t rows = z.b * z.s;

  const auto over_tp = traffic_of<tp>(mesh, [&] {
    const H y = column_linear<hidden>(x, w, b);
    const auto g = column_linear_backward(dy, x, w);
    // Each rank knows the part of dx that its outputs contribute, and dw and db of its own rows.
    static_assert(std::is_same_v<decltype(g.x), On<X::dims, Shard<batch, dp>, Partial<tp>>>);
    static_assert(std::is_same_v<decltype(g.weight), On<Up::dims, Partial<dp>, Shard<ffn, tp>>>);
    static_assert(std::is_same_v<decltype(g.bias), On<UpBias::dims, Partial<dp>, Shard<ffn, tp>>>);
  });
  require(over_tp == Traffic{}, "a column-parallel layer is local");

  same(column_linear<hidden>(x, w, b), dense_linear(rows, z.h, z.f, whole(x), whole(w), whole(b)), "column y");
  const auto g = column_linear_backward(dy, x, w);
  const auto dense = dense_linear_backward(rows, z.h, z.f, whole(dy), whole(x), whole(w));
  same(g.x, dense.x, "column dx");
  same(g.weight, dense.w, "column dw");
  same(g.bias, dense.b, "column db");
}

template <class To, class Y>
void row_as_dense(const Grid& mesh, const Sizes& z, std::uint64_t seed) {
  const auto x = random<H>(mesh, {z.b, z.s, z.f}, seed);
  const auto w = random<Down>(mesh, {z.f, z.h}, seed + 1);
  const auto b = random<DownBias>(mesh, {z.h}, seed + 2);
  const auto dy = random<Y>(mesh, {z.b, z.s, z.h}, seed + 3);
  const std::size_t rows = z.b * z.s;
  constexpr bool by_sequence = std::is_same_v<To, Shard<seq, tp>>;
  using Owes = std::conditional_t<by_sequence, Partial<tp>, Replicate<tp>>;

  const bool alone = mesh.size<tp>() == 1;
  const auto forward = traffic_of<tp>(mesh, [&] { const Y y = row_linear<To, ffn>(x, w, b); });
  require(forward.calls == (alone ? 0 : 1), "a row-parallel layer converts once");
  const auto backward = traffic_of<tp>(mesh, [&] {
    const auto g = row_linear_backward(dy, x, w);
    static_assert(std::is_same_v<decltype(g.x), H>);
    static_assert(std::is_same_v<decltype(g.weight), On<Down::dims, Partial<dp>, Shard<ffn, tp>>>);
    static_assert(std::is_same_v<decltype(g.bias), On<DownBias::dims, Partial<dp>, Owes>>);
  });
  require(backward.calls == (alone || !by_sequence ? 0 : 1), "the backward of an all-reduce is free");

  const std::uint64_t elements = mesh.coordinate<tp>() == 0 ? dy.template range<batch>().size * z.s * z.h : 0;
  const std::uint64_t once = sum_over_ranks(mesh, elements) * static_cast<std::uint64_t>(mesh.size<tp>() - 1) * 8;
  require(sum_over_ranks(mesh, forward.volume) == (by_sequence ? 1 : 2) * once, "volume of the forward");
  require(sum_over_ranks(mesh, backward.volume) == (by_sequence ? 1 : 0) * once, "volume of the backward");

  same(row_linear<To, ffn>(x, w, b), dense_linear(rows, z.f, z.h, whole(x), whole(w), whole(b)), "row y");
  const auto g = row_linear_backward(dy, x, w);
  const auto dense = dense_linear_backward(rows, z.f, z.h, whole(dy), whole(x), whole(w));
  same(g.x, dense.x, "row dx");
  same(g.weight, dense.w, "row dw");
  same(g.bias, dense.b, "row db");
}

void all_as_dense(const Grid& mesh, const Sizes& z, std::uint64_t seed) {
  column_as_dense(mesh, z, seed);
  row_as_dense<Shard<seq, tp>, Sequence>(mesh, z, seed + 10);
  row_as_dense<Replicate<tp>, X>(mesh, z, seed + 20);
}

}  // namespace

TEST_CASE("column and row linear: forward and backward are the dense ones, whatever the ranks and sizes") {
  Draw draw(1);
  const int cases = full() ? 400 : 25;
  for (int i = 0; i < cases; ++i) {
    const Ranks ranks = draw.ranks();
    const Sizes z{draw.of(sizes), draw.of(sizes), draw.of(sizes), draw.of(sizes)};
    CAPTURE(ranks.data);
    CAPTURE(ranks.tensor);
    CAPTURE(z.b);
    CAPTURE(z.s);
    CAPTURE(z.h);
    CAPTURE(z.f);
    const auto check = [&](const Grid& mesh) { all_as_dense(mesh, z, static_cast<std::uint64_t>(i) * 100); };
    CHECK_NOTHROW(on_grid(ranks, check));
  }
}

TEST_CASE("column and row linear: fewer of everything than ranks") {
  for (const Ranks ranks : {Ranks{3, 3}, Ranks{1, 9}, Ranks{9, 1}}) {
    CHECK_NOTHROW(on_grid(ranks, [](const Grid& mesh) { all_as_dense(mesh, {1, 1, 1, 1}, 7); }));
    CHECK_NOTHROW(on_grid(ranks, [](const Grid& mesh) { all_as_dense(mesh, {2, 2, 5, 2}, 8); }));
  }
}

TEST_CASE("row linear: the bias is added once, not once per rank") {
  on_grid({2, 4}, [](const Grid& mesh) {
    const H x(mesh, {3, 5, 7});  // zeros
    const auto w = random<Down>(mesh, {7, 6}, 1);
    const auto b = random<DownBias>(mesh, {6}, 2);
    const auto once = [&](const auto& y) {
      const auto values = whole(y);
      for (std::size_t i = 0; i < values.size(); ++i) require(values[i] == b.local()[i % 6], "the bias, to the bit");
    };
    once(row_linear<Shard<seq, tp>, ffn>(x, w, b));
    once(row_linear<Replicate<tp>, ffn>(x, w, b));
  });
}

TEST_CASE("column and row linear: two dims as outputs and as inputs, heads split unevenly or not held at all") {
  using Projection = On<Dims<hidden, heads, head_dim>, Shard<heads, tp>>;
  using ProjectionBias = On<Dims<heads, head_dim>, Shard<heads, tp>>;
  using Output = On<Dims<heads, head_dim, hidden>, Shard<heads, tp>>;
  using Q = On<Dims<batch, seq, heads, head_dim>, Shard<batch, dp>, Shard<heads, tp>>;
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{2, 2}, Ranks{1, 4}}) {
    on_grid(ranks, [](const Grid& mesh) {
      const std::size_t b = 3, s = 5, h = 6, n = 3, d = 2;
      const auto x = random<X>(mesh, {b, s, h}, 1);
      const auto w = random<Projection>(mesh, {h, n, d}, 2);
      const auto c = random<ProjectionBias>(mesh, {n, d}, 3);
      const auto dq = random<Q>(mesh, {b, s, n, d}, 4);
      const Q q = column_linear<hidden>(x, w, c);
      same(q, dense_linear(b * s, h, n * d, whole(x), whole(w), whole(c)), "q");
      const auto g = column_linear_backward(dq, x, w);
      const auto dense = dense_linear_backward(b * s, h, n * d, whole(dq), whole(x), whole(w));
      same(g.x, dense.x, "dx");
      same(g.weight, dense.w, "dw");
      same(g.bias, dense.b, "db");

      const auto o = random<Output>(mesh, {n, d, h}, 5);
      const auto e = random<DownBias>(mesh, {h}, 6);
      const auto dy = random<Sequence>(mesh, {b, s, h}, 7);
      const Sequence y = row_linear<Shard<seq, tp>, heads, head_dim>(q, o, e);
      same(y, dense_linear(b * s, n * d, h, whole(q), whole(o), whole(e)), "y");
      const auto row = row_linear_backward(dy, q, o);
      const auto dense_row = dense_linear_backward(b * s, n * d, h, whole(dy), whole(q), whole(o));
      same(row.x, dense_row.x, "dq");
      same(row.weight, dense_row.w, "do");
      same(row.bias, dense_row.b, "de");
    });
  }
}

TEST_CASE("a column layer, then a row layer: all ranks compute what one rank computes") {
  const auto run = [](Ranks ranks) {
    std::vector<double> y, dx;
    on_grid(ranks, [&](const Grid& mesh) {
      const auto x = random<Sequence>(mesh, {3, 7, 5}, 1);
      const auto w1 = random<Up>(mesh, {5, 11}, 2);
      const auto b1 = random<UpBias>(mesh, {11}, 3);
      const auto w2 = random<Down>(mesh, {11, 5}, 4);
      const auto b2 = random<DownBias>(mesh, {5}, 5);
      const auto dy = random<Sequence>(mesh, {3, 7, 5}, 6);
      const X all = convert<Replicate<tp>>(x);
      const H h = column_linear<hidden>(all, w1, b1);
      const Sequence out = row_linear<Shard<seq, tp>, ffn>(h, w2, b2);
      const auto row = row_linear_backward(dy, h, w2);
      const Sequence in = backward_to<Sequence>(column_linear_backward(row.x, all, w1).x);
      const auto whole_y = whole(out), whole_dx = whole(in);
      if (mesh.is_first()) {
        y = whole_y;
        dx = whole_dx;
      }
    });
    return std::pair(y, dx);
  };
  const auto one = run({1, 1});
  for (const Ranks ranks : {Ranks{1, 2}, Ranks{2, 1}, Ranks{2, 3}, Ranks{1, 8}, Ranks{4, 2}}) {
    const auto many = run(ranks);
    CHECK(difference(many.first, one.first) < 1e-14);
    CHECK(difference(many.second, one.second) < 1e-14);
  }
}
