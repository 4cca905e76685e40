// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/tensor.hpp"

#include <doctest/doctest.h>

#include "support.hpp"

namespace test {
namespace {

using Cube = Dims<d0, d1, d2>;
template <class... Ps>
using T = Tensor<double, Cube, On<Ps...>>;
template <class X>
using Of = Tensor<X, Cube, On<Shard<d0, tp>>>;

// Dims and layouts that contradict each other give a type without constructors.
static_assert(std::is_constructible_v<T<Shard<d0, tp>>, const Grid&, const Extents<Cube>&>);
using Repeated = Tensor<double, Dims<d0, d0>, On<>>;
using Foreign = Tensor<double, Dims<d0>, On<Shard<d1, tp>>>;
using Twice = Tensor<double, Dims<d0>, On<Shard<d0, tp>, Partial<tp>>>;
static_assert(!std::is_constructible_v<Repeated, const Grid&, const Extents<Dims<d0, d0>>&>);
static_assert(!std::is_constructible_v<Foreign, const Grid&, const Extents<Dims<d0>>&>);
static_assert(!std::is_constructible_v<Twice, const Grid&, const Extents<Dims<d0>>&>);
// A layout is never changed silently.
static_assert(!std::is_convertible_v<T<Partial<tp>>, T<>> && !std::is_constructible_v<T<>, T<Partial<tp>>>);
static_assert(!std::is_assignable_v<T<>&, T<Shard<d0, tp>>>);
static_assert(std::is_nothrow_move_constructible_v<T<>> && std::is_nothrow_move_assignable_v<T<>>);

TEST_CASE("every rank holds the ranges that the split rule gives it, and zeros in them") {
  for (const GridSize size : all_grids) {
    on_grid(size, [](const Rank& rank) {
      const auto k = static_cast<std::size_t>(rank.mesh.coordinate<dp>());
      const auto t = static_cast<std::size_t>(rank.mesh.coordinate<tp>());
      const auto n = static_cast<std::size_t>(rank.mesh.size<dp>());
      const auto m = static_cast<std::size_t>(rank.mesh.size<tp>());
      const auto cut = [](std::size_t count, std::size_t parts, std::size_t i) {
        return Range{i * count / parts, (i + 1) * count / parts - i * count / parts};
      };
      for (const std::size_t a : small_sizes) {
        for (const std::size_t b : small_sizes) {
          const Extents<Cube> extents{a, b, 3};
          const T<> whole(rank.mesh, extents);
          require(whole.range<d0>() == Range{0, a} && whole.local().size() == 3 * a * b, "whole");
          const T<Partial<tp>> part(rank.mesh, extents);
          require(part.local().size() == 3 * a * b && part.size() == 3 * a * b, "partial");
          const T<Shard<d0, dp>, Shard<d1, tp>> two(rank.mesh, extents);
          require(two.range<d0>() == cut(a, n, k) && two.range<d1>() == cut(b, m, t) && two.range<d2>() == Range{0, 3},
                  "two dims");
          require(two.local().size() == two.range<d0>().size * two.range<d1>().size * 3, "local size");
          require(two.extent<d0>() == a && two.extents() == extents && two.size() == 3 * a * b, "extents");
          const T<Shard<d0, dp, tp>> inner(rank.mesh, extents);
          require(inner.range<d0>() == cut(a, n * m, k * m + t), "dp major");
          const T<Shard<d0, tp, dp>> outer(rank.mesh, extents);
          require(outer.range<d0>() == cut(a, n * m, t * n + k), "tp major");
          for (const double value : two.local()) require(value == 0, "zeros");
          // Every element is held once, replicas aside.
          require_equal(rank.denoted(inner), std::vector<double>(3 * a * b, 0.0), "assembled");
        }
      }
    });
  }
}

TEST_CASE("copies share storage until one is written") {
  for (const GridSize size : {GridSize{1, 1}, GridSize{1, 2}}) {
    on_grid(size, [](const Rank& rank) {
      T<> a = rank.integers<T<>>({2, 3, 1});
      const std::vector<double> before(a.local().begin(), a.local().end());
      const auto unchanged = [&](const T<>& x) { return std::equal(before.begin(), before.end(), x.local().begin()); };
      require(a.unique(), "alone");
      T<> b = a;
      require(!a.unique() && a.local().data() == b.local().data(), "shared");
      b.mutable_local()[0] += 1;
      require(a.unique() && b.unique() && a.local().data() != b.local().data(), "parted");
      require(unchanged(a) && b.local()[0] == before[0] + 1 && b.local()[5] == before[5], "the write is seen once");
      const double* where = a.local().data();
      a.mutable_local()[0] += 0;
      require(a.local().data() == where, "a unique one stays where it is");

      T<> c = std::move(a);
      require(c.local().data() == where && c.unique(), "moved");
      a = c;
      c = T<>(rank.mesh, {1, 1, 1});
      require(a.unique() && unchanged(a) && c.local().size() == 1, "assigned");
      T<> empty(rank.mesh, {0, 3, 2});
      const T<> other = empty;
      require(empty.mutable_local().empty() && other.local().empty(), "empty");
    });
  }
}

TEST_CASE("memory is counted, reused, and returned") {
  on_grid({1, 1}, [](const Rank& rank) {
    Heap& heap = rank.mesh.memory();
    {
      const T<> a(rank.mesh, {4, 4, 4});
      const T<> b = a;
      require(heap.total().current == 64 * sizeof(double), "a copy costs nothing");
      const CategoryScope scope(heap, Category::parameters);
      const Of<float> c(rank.mesh, {5, 1, 1});
      require(heap.usage(Category::parameters).current == 5 * sizeof(float), "category");
    }
    require(heap.total().current == 0, "all returned");
    const double* first = T<>(rank.mesh, {4, 4, 4}).local().data();
    require(T<>(rank.mesh, {4, 4, 4}).local().data() == first, "reused");
  });
}

TEST_CASE("tensors without dims and of other elements") {
  on_grid({1, 2}, [](const Rank& rank) {
    Tensor<std::int32_t, Dims<>, On<Partial<tp>>> scalar(rank.mesh, {});
    require(scalar.local().size() == 1 && scalar.size() == 1, "one element");
    scalar.mutable_local()[0] = 3 + rank.mesh.coordinate<tp>();
    require_equal(rank.denoted(scalar), {7}, "the sum of the parts");
    require_equal(rank.denoted(rank.integers<Of<bf16>>({3, 1, 1})),
                  array(3, [](std::size_t i) { return integer(i, 1); }), "bf16");
    require_equal(rank.denoted(rank.integers<Of<std::int8_t>>({3, 2, 1})),
                  array(6, [](std::size_t i) { return integer(i, 1); }), "int8");
  });
}

TEST_CASE("extents that no memory can hold are an error, not a small tensor") {
  on_grid({1, 1}, [](const Rank& rank) {
    const auto text = [&](Extents<Cube> extents) { return error_of([&] { const T<> x(rank.mesh, extents); }); };
    const std::size_t large = std::size_t{1} << 33;
    require(contains(text({large, large, 1}), "8589934592 x 8589934592 x 1"), "product");
    require(contains(text({static_cast<std::size_t>(-1), 1, 1}), "Tensor (rank 0): expected extents"), "negative");
    require(contains(text({std::size_t{1} << 60, 1, 1}), "Heap::allocate"), "too much memory");
    require(text({large, 0, large}).find("Tensor") == 0, "none of them, but too many places");
    require(text({std::size_t{1} << 40, 0, 1}).empty(), "an empty one is fine");
  });
}

}  // namespace
}  // namespace test

using namespace meshwise;

TEST_CASE("a tensor that was moved from is an error to use, not a crash, until it is assigned to") {
  test::on_grid({1, 1}, [](const test::Rank& rank) {
    using X = Tensor<float, Dims<batch>, Layout<test::Grid>>;
    X x(rank.mesh, {5});
    const X y = std::move(x);
    CHECK_THROWS_AS(static_cast<void>(x.local()), Error);
    CHECK_THROWS_AS(static_cast<void>(x.mutable_local()), Error);
    x = y;
    CHECK(x.local().size() == 5);
  });
}
