// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/to_global.hpp"

#include <doctest/doctest.h>

#include "meshwise/tensor/generate.hpp"
#include "support.hpp"

// There and back again stand in from_global.cpp.
namespace test {
namespace {

using Square = Dims<d0, d1>;
template <class... Ps>
using T = Tensor<double, Square, On<Ps...>>;

TEST_CASE("the whole on every rank, and at one root for what each piece costs once") {
  for (const GridSize size : few_grids) {
    on_grid(size, [](const Rank& rank) {
      const auto value = array(35, [](std::size_t i) { return integer(i, 1); });
      const auto x = rank.integers<T<Shard<d0, tp>>>({7, 5});
      const Traffic before = rank.mesh.world().traffic();
      require(to_global(x) == value, "everywhere");
      require(to_global(x, 0) == (rank.mesh.is_first() ? value : std::vector<double>{}), "at a root");
      const auto moved = static_cast<double>((rank.mesh.world().traffic() - before).volume);
      const std::size_t own = split(7, static_cast<std::size_t>(rank.mesh.size<tp>()), 0).size * 5;
      if (rank.mesh.size<dp>() > 1) {
        require(rank.total(moved) == static_cast<double>((35 - own) * sizeof(double)), "replicas send nothing");
      }
      const auto owed = rank.integers<T<Partial<dp>, Partial<tp>>>({7, 5});
      require(to_global(owed) == value, "sums are carried out");
      require(to_global(T<Partial<dp>, Partial<tp>>(owed), 0).size() == (rank.mesh.is_first() ? 35U : 0U), "sums");
    });
  }
}

TEST_CASE("a root of some of the ranks, by their coordinates in the mesh") {
  on_grid({3, 2}, [](const Rank& rank) {
    const auto some = rank.mesh.narrowed<dp>({2, 0});
    if (!some) return;
    for (int root = 0; root < 4; ++root) {
      const auto x =
          generate<T<Shard<d0, dp>, Shard<d1, tp>>>(*some, {5, 3}, [](const auto& i) { return integer(i.linear, 1); });
      const bool here = some->coordinate<dp>() * 2 + some->coordinate<tp>() == root;
      const auto value = array(15, [](std::size_t i) { return integer(i, 1); });
      require(to_global(x, root) == (here ? value : std::vector<double>{}), "root");
      require(to_global(reshard<On<Shard<d1, dp, tp>>>(x)) == value, "several axes");
      require(to_global(reshard<On<Shard<d0, tp, dp>>>(x)) == value, "in another order");
    }
  });
}

}  // namespace
}  // namespace test
