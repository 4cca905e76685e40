// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/contract.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "meshwise/tensor/rename.hpp"
#include "support.hpp"

namespace test {
namespace {

/// An array with named dims.
struct Array {
  std::vector<int> names;
  std::vector<std::size_t> extents;
  std::vector<double> values;
};
template <class All, class X>
Array array_of(const Rank& rank, const X& x) {
  Array a;
  [&]<class... Ds>(detail::list<Ds...>) {
    (a.names.push_back(detail::index_of<Ds, All>), ...);
  }(detail::dims_of<typename X::dims>{});
  a.extents.assign(x.extents().begin(), x.extents().end());
  a.values = rank.denoted(x);
  return a;
}

/// The product of a and b summed over the names that c lacks: a loop over all names. Fills c.values and returns the
/// sums of the absolute products.
std::vector<double> multiply(const Array& a, const Array& b, Array& c) {
  std::vector<std::size_t> extent(16, 1), at(16, 0);
  for (const Array* x : {&a, &b}) {
    for (std::size_t i = 0; i < x->names.size(); ++i) extent[static_cast<std::size_t>(x->names[i])] = x->extents[i];
  }
  std::size_t size = 1, total = 1;
  for (const int name : c.names) size *= extent[static_cast<std::size_t>(name)];
  for (const std::size_t e : extent) total *= e;
  c.values.assign(size, 0.0);
  std::vector<double> magnitude(size, 0.0);
  const auto place = [&](const Array& x) {
    std::size_t position = 0;
    for (const int name : x.names) {
      position = position * extent[static_cast<std::size_t>(name)] + at[static_cast<std::size_t>(name)];
    }
    return position;
  };
  for (std::size_t i = 0; i < total; ++i) {
    std::size_t rest = i;
    for (std::size_t n = 0; n < extent.size(); ++n) {
      at[n] = rest % extent[n];
      rest /= extent[n];
    }
    const double product = a.values[place(a)] * b.values[place(b)];
    c.values[place(c)] += product;
    magnitude[place(c)] += std::fabs(product);
  }
  return magnitude;
}

/// c is the product of a and b, exactly, or within a relative error of the sum of absolute products.
template <class A, class B, class C>
void require_product(const Rank& rank, const A& a, const B& b, const C& c, double tolerance, const char* what) {
  using all = detail::join<detail::dims_of<typename A::dims>, detail::dims_of<typename B::dims>>;
  const Array left = array_of<all>(rank, a), right = array_of<all>(rank, b), found = array_of<all>(rank, c);
  Array wanted{found.names, found.extents, {}};
  const std::vector<double> magnitude = multiply(left, right, wanted);
  require(found.values.size() == wanted.values.size(), std::string(what) + ": extents");
  for (std::size_t i = 0; i < wanted.values.size(); ++i) {
    require(std::fabs(found.values[i] - wanted.values[i]) <= tolerance * magnitude[i], what);
  }
}
template <class... Summed, class A, class B>
auto contracted(const Rank& rank, const A& a, const B& b, const char* what, double tolerance = 0) {
  auto c = contract<Summed...>(a, b);
  require_product(rank, a, b, c, tolerance, what);
  return c;
}
template <class ResultDims, class A, class B>
auto einsummed(const Rank& rank, const A& a, const B& b, const char* what) {
  auto c = einsum<ResultDims>(a, b);
  static_assert(std::is_same_v<typename decltype(c)::dims, ResultDims>);
  require_product(rank, a, b, c, 0, what);
  return c;
}

template <class E, class D, class... Ps>
using T = Tensor<E, D, On<Ps...>>;
template <class T1, class T2>
inline constexpr bool same = std::is_same_v<T1, T2>;

struct Sizes {
  std::size_t b, s, h, f, n, k;
};

/// The products of a feed-forward block, forward and backward, tensor-parallel.
void feed_forward(const Rank& rank, const Sizes& z) {
  using E = double;
  using Act = T<E, Dims<batch, seq, hidden>, Shard<batch, dp>>;
  using Inner = T<E, Dims<batch, seq, ffn>, Shard<batch, dp>, Shard<ffn, tp>>;
  const auto x = rank.integers<Act>({z.b, z.s, z.h}, 1);
  const auto w1 = rank.integers<T<E, Dims<hidden, ffn>, Shard<ffn, tp>>>({z.h, z.f}, 2);
  const auto w2 = rank.integers<T<E, Dims<ffn, hidden>, Shard<ffn, tp>>>({z.f, z.h}, 3);
  const auto dy = rank.integers<Act>({z.b, z.s, z.h}, 4);
  const auto h1 = rank.integers<Inner>({z.b, z.s, z.f}, 5);

  const auto h = contracted<hidden>(rank, x, w1, "free dim sharded");
  static_assert(same<std::remove_const_t<decltype(h)>, Inner>);
  const auto y = contracted<ffn>(rank, h1, w2, "summed dim sharded");
  static_assert(same<std::remove_const_t<decltype(y)>, T<E, Dims<batch, seq, hidden>, Shard<batch, dp>, Partial<tp>>>);
  const auto dw2 = contracted<batch, seq>(rank, h1, dy, "gradient of the second weight");
  static_assert(same<std::remove_const_t<decltype(dw2)>, T<E, Dims<ffn, hidden>, Partial<dp>, Shard<ffn, tp>>>);
  const auto dh = contracted<hidden>(rank, dy, w2, "gradient of the inner activations");
  static_assert(same<std::remove_const_t<decltype(dh)>, Inner>);
  contracted<batch, seq>(rank, x, h1, "gradient of the first weight");
  contracted<ffn>(rank, h1, w1, "gradient of the input");
}

/// A product with a Partial result and one without.
template <class E>
void in_elements(const Rank& rank, double tolerance) {
  const auto x = rank.integers<T<E, Dims<d0, d1>, Shard<d0, dp>, Shard<d1, tp>>>({5, 7}, 1);
  const auto w = rank.integers<T<E, Dims<d1, d2>, Shard<d1, tp>>>({7, 3}, 2);
  contracted<d1>(rank, x, w, "a Partial result", tolerance);
  contracted<d2>(rank, rank.integers<T<E, Dims<d0, d2>, Shard<d0, dp>>>({5, 3}, 3), w, "a sharded result", tolerance);
}

void attention(const Rank& rank, const Sizes& z) {
  using E = double;
  using Heads = T<E, Dims<batch, seq, heads, head_dim>, Shard<batch, dp>, Shard<heads, tp>>;
  using Scores = Dims<batch, heads, seq, key<seq>>;
  const Extents<typename Heads::dims> extents{z.b, z.s, z.n, z.k};
  const auto q = rank.integers<Heads>(extents, 1), k = rank.integers<Heads>(extents, 2);
  const auto v = rename<seq, key<seq>>(rank.integers<Heads>(extents, 3));
  const auto p = rank.integers<T<E, Scores, Shard<batch, dp>, Shard<heads, tp>>>({z.b, z.n, z.s, z.s}, 4);

  const auto scores = einsummed<Scores>(rank, q, rename<seq, key<seq>>(k), "scores");
  static_assert(same<std::remove_const_t<decltype(scores)>, std::remove_const_t<decltype(p)>>);
  const auto out = einsummed<Dims<batch, seq, heads, head_dim>>(rank, p, v, "weighted values");
  static_assert(same<std::remove_const_t<decltype(out)>, Heads>);
  einsummed<Dims<batch, key<seq>, heads, head_dim>>(rank, p, q, "gradient of the values");
  const auto wo = rank.integers<T<E, Dims<heads, head_dim, hidden>, Shard<heads, tp>>>({z.n, z.k, z.h}, 5);
  const auto y = contracted<heads, head_dim>(rank, q, wo, "output projection");
  static_assert(same<typename decltype(y)::layout, On<Shard<batch, dp>, Partial<tp>>>);
}

void other_layouts(const Rank& rank, const Sizes& z) {
  using E = double;
  const auto part = rank.integers<T<E, Dims<d0, d1>, Partial<tp>>>({z.b, z.s}, 1);
  const auto whole = rank.integers<T<E, Dims<d1, d2>>>({z.s, z.h}, 2);
  const auto c = contracted<d1>(rank, part, whole, "a Partial on the left");
  static_assert(same<typename decltype(c)::layout, On<Partial<tp>>>);
  const auto d = contracted<d1>(rank, whole, part, "a Partial on the right");
  static_assert(same<typename decltype(d)::layout, On<Partial<tp>>>);
  const auto cut = rank.integers<T<E, Dims<d1, d2>, Shard<d2, dp>>>({z.s, z.h}, 3);
  contracted<d1>(rank, part, cut, "a Partial and a shard");

  const auto a = rank.integers<T<E, Dims<d0, d1>, Shard<d0, dp, tp>>>({z.f, z.s}, 4);
  const auto b = rank.integers<T<E, Dims<d0, d2>, Shard<d0, dp, tp>>>({z.f, z.h}, 5);
  const auto owed = contracted<d0>(rank, a, b, "summed over two axes");
  static_assert(same<typename decltype(owed)::layout, On<Partial<dp>, Partial<tp>>>);
  const auto tall = contracted<d1>(rank, a, whole, "free over two axes");
  static_assert(same<typename decltype(tall)::layout, On<Shard<d0, dp, tp>>>);

  // Other split rules: summed, free and kept dims. Dims cut by different rules do not meet.
  const auto zig = rank.integers<T<E, Dims<d0, d1>, Shard<d0, Zigzag<dp>>, Shard<d1, Striped<tp>>>>({z.f, z.s}, 9);
  const auto zag = rank.integers<T<E, Dims<d1, d2>, Shard<d1, Striped<tp>>>>({z.s, z.h}, 10);
  const auto through = contracted<d1>(rank, zig, zag, "summed by stripes");
  static_assert(same<typename decltype(through)::layout, On<Shard<d0, Zigzag<dp>>, Partial<tp>>>);
  const auto kept = contracted<d0>(rank, zig, zig, "summed from both ends");
  static_assert(same<typename decltype(kept)::layout, On<Partial<dp>, Shard<d1, Striped<tp>>>>);
  const auto cut1 = rank.integers<T<E, Dims<d1, d2>, Shard<d1, tp>>>({z.s, z.h}, 11);
  static_assert(!detail::is_accepted<detail::contract_of<decltype(zig), decltype(cut1), d1>>);

  // All dims summed, none summed, a batch dim in the result.
  const auto dot = contracted<d0, d1>(rank, a, a, "inner product");
  static_assert(same<std::remove_const_t<decltype(dot)>, T<E, Dims<>, Partial<dp>, Partial<tp>>>);
  const auto u = rank.integers<T<E, Dims<d0>, Shard<d0, tp>>>({z.f}, 6);
  const auto w = rank.integers<T<E, Dims<d1>, Shard<d1, dp>>>({z.s}, 7);
  const auto outer = contracted<>(rank, u, w, "outer product");
  static_assert(same<std::remove_const_t<decltype(outer)>, T<E, Dims<d0, d1>, Shard<d0, tp>, Shard<d1, dp>>>);
  einsummed<Dims<d1, d0>>(rank, a, rank.integers<T<E, Dims<d0>, Shard<d0, dp, tp>>>({z.f}, 8), "scaled rows");
}

TEST_CASE("contractions of a transformer in double, over layouts and sizes, uneven and empty ones included") {
  for (const GridSize size : few_grids) {
    on_grid(size, [](const Rank& rank) {
      Draw draw(13);
      const auto check = [&](const Sizes& z) {
        feed_forward(rank, z);
        attention(rank, z);
        other_layouts(rank, z);
      };
      check({3, 5, 4, 7, 3, 2});
      check({1, 1, 1, 1, 1, 1});
      check({2, 3, 0, 5, 2, 0});
      for (int i = 0; i < (full() ? 40 : 4); ++i) {
        check({draw.size(), draw.size(), draw.size(), draw.size(), draw.size(), draw.size()});
      }
    });
  }
}

TEST_CASE("float is exact for small integers, bf16 rounds results once") {
  for (const GridSize size : {GridSize{1, 1}, GridSize{2, 3}}) {
    on_grid(size, [](const Rank& rank) {
      in_elements<float>(rank, 0);
      in_elements<bf16>(rank, 1.0 / 256);
    });
  }
}

TEST_CASE("extents and meshes that do not meet are errors") {
  on_grid({1, 2}, [](const Rank& rank) {
    using A = T<double, Dims<d0, hidden>, Shard<d0, tp>>;
    using B = T<double, Dims<hidden, d1>>;
    const A a(rank.mesh, {3, 5});
    const std::string text = error_of([&] { static_cast<void>(contract<hidden>(a, B(rank.mesh, {4, 2}))); });
    require(contains(text, "contract (rank "), text);
    require(contains(text, "expected hidden = 5 as in the first operand, found hidden = 4 in the second"), text);
    const Grid other(rank.mesh.world(), {1, 2});
    require(contains(error_of([&] {
                       static_cast<void>(contract<hidden>(a, B(other, {5, 2})));
                     }),
                     "one mesh"),
            "two meshes");
    const std::string batched = error_of([&] { static_cast<void>(einsum<Dims<d0>>(a, A(rank.mesh, {2, 5}))); });
    require(contains(batched, "einsum") && contains(batched, "= 3 as in") && contains(batched, "= 2 in"), batched);
  });
}

}  // namespace
}  // namespace test
