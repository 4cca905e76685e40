// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/from_global.hpp"

#include <doctest/doctest.h>

#include "meshwise/tensor/to_global.hpp"
#include "support.hpp"

namespace test {
namespace {

using Square = Dims<d0, d1>;
template <class... Ps>
using T = Tensor<float, Square, On<Ps...>>;

template <class X>
void check(const Rank& rank, const Extents<Square>& extents) {
  const std::string what = name_of<typename X::layout>();
  const std::size_t columns = extents[1];
  const auto value = [](std::size_t i) { return integer(i, 9); };
  std::vector<float> whole(extents[0] * columns);
  for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<float>(value(i));
  const Traffic before = rank.mesh.traffic<dp>() + rank.mesh.traffic<tp>();

  const X x = from_global<X>(rank.mesh, extents, whole);
  const X same = from_global<X>(rank.mesh, extents, [&](const Index<Square>& index) {
    require(index.linear == index.template position<d0>() * columns + index.template position<d1>(), what + ": index");
    return value(index.linear);
  });
  require(rank.mesh.traffic<dp>() + rank.mesh.traffic<tp>() == before, what + ": nothing is sent");
  require(std::equal(x.local().begin(), x.local().end(), same.local().begin(), same.local().end()), what + ": both");
  require_equal(rank.denoted(x), array(whole.size(), value), what);

  require(to_global(x) == whole, what + ": to_global");
  for (int root = 0; root < rank.mesh.world().size(); ++root) {
    const std::vector<float> there = to_global(x, root);
    require(rank.mesh.world().rank() == root ? there == whole : there.empty(), what + ": to_global at a root");
  }
}

TEST_CASE("there and back, every kind of placement") {
  for (const GridSize size : few_grids) {
    on_grid(size, [](const Rank& rank) {
      for (const Extents<Square>& extents : {Extents<Square>{7, 5}, {2, 1}, {0, 3}, {3, 0}}) {
        check<T<>>(rank, extents);
        check<T<Shard<d0, dp, tp>>>(rank, extents);
        check<T<Shard<d0, tp, dp>>>(rank, extents);
        check<T<Shard<d1, tp>>>(rank, extents);
        check<T<Shard<d0, Zigzag<tp>>, Shard<d1, Striped<dp>>>>(rank, extents);
        check<T<Shard<d1, Chunked<tp>, dp>>>(rank, extents);
        check<T<Partial<dp>, Shard<d0, tp>>>(rank, extents);
        check<T<Partial<tp, Max>, Partial<dp, Max>>>(rank, extents);
      }
      const auto n = static_cast<std::size_t>(rank.mesh.size<tp>());
      std::vector<std::size_t> counts(n, 1);
      counts[n - 1] += 3;
      check<T<Shard<d0, Counted<tp>, dp>>>(rank, {Extent::of_parts(counts), 4});
    });
  }
}

TEST_CASE("a number, and a mesh that is a part of another one") {
  on_grid({2, 3}, [](const Rank& rank) {
    using Number = Tensor<double, Dims<>, On<Partial<tp>>>;
    const std::vector<double> seven{7};
    const Number x = from_global<Number>(rank.mesh, {}, seven);
    require(x.local()[0] == (rank.mesh.coordinate<tp>() == 0 ? 7 : 0), "coordinate 0 keeps the value");
    require(to_global(x) == seven, "a number");
    require(to_global(x, 5) == (rank.mesh.world().rank() == 5 ? seven : std::vector<double>{}), "at a root");

    // Each row of the mesh has its own.
    using Row = Tensor<double, Dims<d0>, Layout<Mesh<tp>, Shard<d0, tp>>>;
    const double row = rank.mesh.coordinate<dp>();
    const std::vector<double> mine{row, row + 1, row + 2, row + 3};
    const Row y = from_global<Row>(rank.mesh.without<dp>(), {4}, mine);
    require(to_global(y) == mine, "a row");
    require(to_global(y, 1) == (rank.mesh.coordinate<tp>() == 1 ? mine : std::vector<double>{}),
            "at a root of the row");
  });
}

TEST_CASE("errors name both sizes and the remedy") {
  on_grid({1, 2}, [](const Rank& rank) {
    const std::vector<float> short_one(5);
    require(contains(error_of([&] {
                       (void)from_global<T<Shard<d0, tp>>>(rank.mesh, {2, 3}, short_one);
                     }),
                     "from_global (rank " + std::to_string(rank.mesh.world().rank()) +
                         "): expected 6 elements, the product of the extents, found 5 elements"),
            "size");
    const T<> x(rank.mesh, {2, 3});
    require(contains(error_of([&] { (void)to_global(x, 2); }), "expected a root in [0, 2)"), "root");
    require(contains(error_of([&] { (void)to_global(x, -1); }), "found -1"), "root");
  });
}

}  // namespace
}  // namespace test
