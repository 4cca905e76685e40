// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/detail/walk.hpp"

#include <doctest/doctest.h>

#include "../support.hpp"

namespace test {
namespace {

using Cube = Dims<d0, d1, d2>;
template <class D>
using T = Tensor<double, D, On<>>;

/// Where the walk beside Small says the elements of a cube are in it, and in how many runs.
template <class Small>
std::size_t check(const Rank& rank, const Extents<Cube>& e) {
  const T<Cube> x(rank.mesh, e);
  const T<Small> small(rank.mesh, detail::extents_from<Small>(x));
  std::size_t next = 0, runs = 0;
  detail::walk_beside<Small>(x).each([&](std::size_t first, std::size_t second, std::size_t n, std::size_t stride) {
    require(first == next && (stride == 0 || stride == 1), "dense in the first array");
    ++runs;
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t at = first + i;
      const std::array<std::size_t, 3> index{at / (e[1] * e[2]), at / e[2] % e[1], at % e[2]};
      std::size_t position = 0;
      [&]<class... Ds>(detail::list<Ds...>) {
        [[maybe_unused]] const auto one = [&](std::size_t d) { position = position * e[d] + index[d]; };
        (one(static_cast<std::size_t>(detail::index_of<Ds, detail::dims_of<Cube>>)), ...);
      }(detail::dims_of<Small>{});
      require(position == second + i * stride, name_of<Small>());
    }
    next += n;
  });
  require(next == x.size(), "all elements");
  return runs;
}

TEST_CASE("positions beside every subset of the dims") {
  on_grid({1, 1}, [](const Rank& rank) {
    for (const std::size_t a : small_sizes) {
      for (const std::size_t b : small_sizes) {
        for (const std::size_t c : small_sizes) {
          const Extents<Cube> e{a, b, c};
          check<Cube>(rank, e);
          check<Dims<d0, d1>>(rank, e);
          check<Dims<d0, d2>>(rank, e);
          check<Dims<d1, d2>>(rank, e);
          check<Dims<d0>>(rank, e);
          check<Dims<d1>>(rank, e);
          check<Dims<d2>>(rank, e);
          check<Dims<>>(rank, e);
        }
      }
    }
  });
}

TEST_CASE("loops that continue each other are merged") {
  on_grid({1, 1}, [](const Rank& rank) {
    require(check<Cube>(rank, {5, 3, 2}) == 1, "all dims");
    require(check<Dims<>>(rank, {5, 3, 2}) == 1, "no dims");
    require(check<Dims<d1, d2>>(rank, {5, 3, 2}) == 5, "inner dims");
    require(check<Dims<d0>>(rank, {5, 3, 2}) == 5, "the outer dim");
    require(check<Dims<d1>>(rank, {5, 3, 2}) == 15, "the middle dim");
    require(check<Dims<d0, d2>>(rank, {5, 1, 2}) == 1, "a dim of one is no loop");
  });
}

}  // namespace
}  // namespace test
