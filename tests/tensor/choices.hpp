// SPDX-License-Identifier: Apache-2.0
// What the tests of choices along a dim share: rows of an array, and layouts that shard whatever they choose along.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "support.hpp"

namespace test::choices {

using Cube = Dims<d0, d1, d2>;
template <class D, class... Ps>
using Doubles = Tensor<double, D, On<Ps...>>;

/// Calls visit(row, place) for the rows of an array of three dims along one of them; place(j, n): where element j
/// stands in an array that has n elements along the dim.
template <class Visit>
void each_row(const std::vector<double>& x, const std::array<std::size_t, 3>& extents, std::size_t d,
              const Visit& visit) {
  std::size_t outer = 1, inner = 1;
  for (std::size_t i = 0; i < d; ++i) outer *= extents[i];
  for (std::size_t i = d + 1; i < 3; ++i) inner *= extents[i];
  std::vector<double> row(extents[d]);
  for (std::size_t o = 0; o < outer; ++o) {
    for (std::size_t i = 0; i < inner; ++i) {
      const auto place = [&](std::size_t j, std::size_t n) { return (o * n + j) * inner + i; };
      for (std::size_t j = 0; j < row.size(); ++j) row[j] = x[place(j, row.size())];
      visit(row, place);
    }
  }
}

/// Calls check<Placements...>(extents, salt) for layouts of every rule, and sizes of all kinds, `more` of them drawn.
template <class Check>
void over_layouts(const Rank& rank, std::uint64_t seed, std::uint64_t more, const Check& check) {
  const auto all = [&](const Extents<Cube>& extents, std::uint64_t salt) {
    check.template operator()<>(extents, salt);
    check.template operator()<Shard<d0, dp>, Shard<d1, tp>>(extents, salt);
    check.template operator()<Shard<d2, tp>>(extents, salt);
    check.template operator()<Shard<d1, dp, tp>>(extents, salt);
    check.template operator()<Shard<d2, tp, dp>>(extents, salt);
    check.template operator()<Shard<d1, Zigzag<dp>, tp>>(extents, salt);
    check.template operator()<Shard<d0, dp>, Shard<d2, Striped<tp>>>(extents, salt);
    check.template operator()<Shard<d2, Chunked<tp>, Zigzag<dp>>>(extents, salt);
    Extents<Cube> counted = extents;
    std::vector<std::size_t> counts(static_cast<std::size_t>(rank.mesh.size<tp>()));
    for (std::size_t k = 0; k < extents[1]; ++k) ++counts[k * k % counts.size()];
    counted[1] = Extent::of_parts(counts);
    check.template operator()<Shard<d1, Counted<tp>, dp>>(counted, salt);
  };
  all({5, 3, 7}, 1);
  all({1, 1, 1}, 2);
  all({2, 17, 1}, 3);
  all({2, 1, 19}, 4);
  Draw draw(seed);
  for (std::uint64_t i = 0; i < more; ++i) all({draw.size(), draw.size(), draw.size()}, 10 + i);
}

inline constexpr std::array<GridSize, 5> grids{{{1, 1}, {1, 2}, {2, 2}, {3, 1}, {1, 4}}};

}  // namespace test::choices
