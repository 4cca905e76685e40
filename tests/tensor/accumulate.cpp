// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/accumulate.hpp"

#include <doctest/doctest.h>

#include "support.hpp"

namespace test {
namespace {

using Square = Dims<d0, d1>;
template <class D, class... Ps>
using T = Tensor<double, D, On<Ps...>>;

template <class A, class B>
concept can_accumulate = requires(A& a, const B& b) {
  a += b;
  a -= b;
};
static_assert(can_accumulate<T<Square, Partial<tp>>, T<Square, Partial<tp>>>);
static_assert(can_accumulate<T<Square, Shard<d0, dp>, Partial<tp>>, T<Square, Shard<d0, dp>, Partial<tp>>>);
static_assert(!can_accumulate<T<Square, Partial<tp>>, T<Square>>, "every rank would add it");
static_assert(!can_accumulate<T<Square>, T<Square, Partial<tp>>>, "a sum that is owed");
static_assert(!can_accumulate<T<Square, Partial<tp>>, T<Square, Partial<dp>>>);
static_assert(!can_accumulate<T<Square, Partial<tp, Max>>, T<Square, Partial<tp, Max>>>, "not linear");
static_assert(!can_accumulate<T<Square, Partial<tp>>, T<Square, Partial<tp, Max>>>);
static_assert(!can_accumulate<T<Square, Shard<d0, tp>>, T<Square>>);
static_assert(!can_accumulate<T<Square, Shard<d0, Zigzag<tp>>>, T<Square, Shard<d0, tp>>>, "cut by another rule");
static_assert(!can_accumulate<T<Dims<d1>>, T<Square>>, "the second operand is the one that is repeated");

/// a + b and a - b by loops over what both denote; b has the dims of a from `first` on.
template <class A, class B>
void check(const Rank& rank, const Extents<typename A::dims>& extents, const Extents<typename B::dims>& fewer) {
  const A before = rank.integers<A>(extents, 1);
  const B b = rank.integers<B>(fewer, 2);
  const std::size_t period = b.size();
  const auto wanted = [&](double sign) {
    return array(before.size(), [&](std::size_t i) { return integer(i, 1) + sign * integer(i % period, 2); });
  };
  A a = before;
  a += b;
  require_equal(rank.denoted(a), wanted(1), "+=");
  a -= b;
  a -= b;
  require_equal(rank.denoted(a), wanted(-1), "-=");
  require_equal(rank.denoted(before), array(before.size(), [](std::size_t i) { return integer(i, 1); }), "the copy");
}

TEST_CASE("in place, for every layout, uneven and empty parts, a Partial unreduced") {
  for (const GridSize size : few_grids) {
    on_grid(size, [](const Rank& rank) {
      Draw draw(3);
      for (int i = 0; i < 8; ++i) {
        const std::size_t m = i == 0 ? 5 : draw.size(), n = i == 0 ? 3 : draw.size();
        check<T<Square>, T<Square>>(rank, {m, n}, {m, n});
        check<T<Square, Shard<d0, dp>, Shard<d1, tp>>, T<Square, Shard<d0, dp>, Shard<d1, tp>>>(rank, {m, n}, {m, n});
        check<T<Square, Shard<d1, tp, dp>>, T<Square, Shard<d1, tp, dp>>>(rank, {m, n}, {m, n});
        check<T<Square, Shard<d0, dp>, Shard<d1, tp>>, T<Dims<d1>, Shard<d1, tp>>>(rank, {m, n}, {n});
        check<T<Square, Shard<d0, dp>, Partial<tp>>, T<Square, Shard<d0, dp>, Partial<tp>>>(rank, {m, n}, {m, n});
        check<T<Square, Partial<dp>, Partial<tp>>, T<Square, Partial<dp>, Partial<tp>>>(rank, {m, n}, {m, n});
        check<T<Square, Partial<tp>>, T<Dims<d1>, Partial<tp>>>(rank, {m, n}, {n});
        check<T<Square, Shard<d0, Zigzag<dp>>, Shard<d1, Striped<tp>>>, T<Dims<d1>, Shard<d1, Striped<tp>>>>(
            rank, {m, n}, {n});
      }
    });
  }
}

TEST_CASE("gradients of micro-batches: accumulated unreduced, one all-reduce at the end") {
  for (const GridSize size : few_grids) {
    on_grid(size, [](const Rank& rank) {
      using Part = T<Square, Partial<dp>, Shard<d1, tp>>;
      Part total = rank.integers<Part>({3, 5}, 1);
      for (std::uint64_t step = 2; step <= 4; ++step) total += rank.integers<Part>({3, 5}, step);
      const auto wanted =
          array(15, [](std::size_t i) { return integer(i, 1) + integer(i, 2) + integer(i, 3) + integer(i, 4); });
      require_equal(rank.denoted(convert<Replicate<dp>>(total)), wanted, "the reduced sum");
    });
  }
}

TEST_CASE("written where it is if nobody shares it; copies, views and arguments keep their values") {
  on_grid({1, 2}, [](const Rank& rank) {
    using Cut = T<Square, Shard<d0, tp>>;
    Cut a = rank.integers<Cut>({3, 4}, 1);
    const double* where = a.local().data();
    a += a;
    require(a.local().data() == where, "itself, in place");
    require_equal(rank.denoted(a), array(12, [](std::size_t i) { return 2 * integer(i, 1); }), "twice");
    a -= a;
    require_equal(rank.denoted(a), std::vector<double>(12), "nothing left");
    const Cut copy = a;
    a += rank.integers<Cut>({3, 4}, 2);
    require(copy.local().data() == where && a.local().data() != where, "the copy keeps the storage");
    require_equal(rank.denoted(copy), std::vector<double>(12), "the copy keeps its value");
    // An argument that shares the storage, and a view of part of it.
    Cut b = a;
    b += a;
    require_equal(rank.denoted(b), array(12, [](std::size_t i) { return 2 * integer(i, 2); }), "its own copy");
    require_equal(rank.denoted(a), array(12, [](std::size_t i) { return integer(i, 2); }), "the argument");
    T<Square> whole = rank.integers<T<Square>>({3, 4}, 3);
    const auto part = view_as<Shard<d0, tp>>(whole);
    whole += whole;
    require_equal(rank.denoted(part), array(12, [](std::size_t i) { return integer(i, 3); }), "the view");
    auto mine = view_as<Shard<d0, tp>>(whole);
    mine += part;
    require_equal(rank.denoted(whole), array(12, [](std::size_t i) { return 2 * integer(i, 3); }), "what was viewed");
    require_equal(rank.denoted(mine), array(12, [](std::size_t i) { return 3 * integer(i, 3); }), "the view's own");
  });
}

TEST_CASE("narrow floats round once per addition, integers wrap") {
  on_grid({1, 2}, [](const Rank& rank) {
    using B = Tensor<bf16, Dims<d0>, On<Shard<d0, tp>>>;
    B b = rank.fill<B>({5}, [](std::size_t) { return 256.0; });
    b += rank.fill<B>({5}, [](std::size_t) { return 3.0; });
    require_equal(rank.denoted(b), std::vector<double>(5, 260.0), "259 is between 258 and 260");
    using I = Tensor<std::int32_t, Dims<d0>, On<Shard<d0, tp>>>;
    I i = rank.integers<I>({5}, 1);
    i -= rank.integers<I>({5}, 2);
    require_equal(rank.denoted(i), array(5, [](std::size_t at) { return integer(at, 1) - integer(at, 2); }), "int");
  });
}

TEST_CASE("operands of other extents or of another mesh are errors, and change nothing") {
  on_grid({1, 2}, [](const Rank& rank) {
    using Cut = T<Square, Shard<d0, tp>>;
    Cut a = rank.integers<Cut>({2, 3}, 1);
    const std::string text = error_of([&] { a += Cut(rank.mesh, {2, 4}); });
    require(
        contains(text, "operator+=") && contains(text, "= 3 as in the first") && contains(text, "= 4 in the second"),
        text);
    require(contains(error_of([&] { a -= T<Dims<d1>>(rank.mesh, {7}); }), "operator-="), "-=");
    using Counts = T<Dims<d0>, Shard<d0, Counted<tp>>>;
    Counts c(rank.mesh, {Extent::of_parts({2, 3})});
    c += Counts(rank.mesh, {Extent::of_parts({2, 3})});
    const std::string counts = error_of([&] { c += Counts(rank.mesh, {Extent::of_parts({4, 1})}); });
    require(contains(counts, "= 5 in parts of 2 3 as in the first") && contains(counts, "= 5 in parts of 4 1"), counts);
    const Grid other(rank.mesh.world(), {1, 2});
    require(contains(error_of([&] { a += Cut(other, {2, 3}); }), "operands on two meshes"), "mesh");
    require_equal(rank.denoted(a), array(6, [](std::size_t i) { return integer(i, 1); }), "unchanged");
  });
}

}  // namespace
}  // namespace test
