// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/dry/dry.hpp"

#include <doctest/doctest.h>

#include <array>
#include <utility>
#include <vector>

#include "../../support/launch.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/fabric/dry/endpoint.hpp"
#include "meshwise/fabric/dry/launch.hpp"
#include "meshwise/tensor/accumulate.hpp"
#include "meshwise/tensor/convert.hpp"
#include "meshwise/tensor/start_convert.hpp"

namespace {

using namespace meshwise;
using Grid = Mesh<dp, tp>;
template <class... Ps>
using Vector = Tensor<float, Dims<flat>, Layout<Grid, Ps...>>;

/// Some conversions and additions of vectors of n elements: what they send and hold on this rank.
struct Costs {
  std::array<Traffic, 2> axes;
  std::size_t current = 0, peak = 0;
};
Costs costs_of(const Grid& mesh, std::size_t n) {
  Vector<Partial<dp>> owed(mesh, {n});
  owed += Vector<Partial<dp>>(mesh, {n});
  auto pending = start_convert<Replicate<dp>>(owed);
  const auto split = convert<Shard<flat, dp>>(owed);
  const auto again = convert<Replicate<dp>>(split) * 2;
  const auto part = convert<Shard<flat, tp>>(pending.wait());
  auto copy = part;
  copy += part;  // writes, so that it is no alias any more
  Costs costs{{mesh.traffic<dp>(), mesh.traffic<tp>()}, mesh.memory().total().current, mesh.memory().total().peak};
  for (Traffic& axis : costs.axes) axis.moved = axis.messages = 0;
  return costs;
}

void on_grids(void (*check)(const std::vector<Costs>& real, std::array<int, 2> sizes, std::size_t n)) {
  for (const std::array<int, 2> sizes : {std::array{1, 1}, std::array{3, 1}, std::array{2, 2}, std::array{1, 3}}) {
    for (const std::size_t n : {0U, 1U, 5U, 1000U}) {
      std::vector<Costs> real(static_cast<std::size_t>(sizes[0] * sizes[1]));
      launch(sizes[0] * sizes[1], [&](Communicator& world) {
        const Grid mesh(world, sizes);
        real[static_cast<std::size_t>(world.rank())] = costs_of(mesh, n);
      });
      check(real, sizes, n);
    }
  }
}

TEST_CASE("dry: conversions and sums send and hold what they do with data, and move nothing") {
  on_grids([](const std::vector<Costs>& real, std::array<int, 2> sizes, std::size_t n) {
    launch_dry(sizes[0] * sizes[1], [&](Communicator& world) {
      const Grid mesh(world, sizes);
      const Costs dry = costs_of(mesh, n), &with = real[static_cast<std::size_t>(world.rank())];
      CHECK(dry.axes == with.axes);
      CHECK(dry.current == with.current);
      CHECK(dry.peak == with.peak);
      CHECK(mesh.traffic<dp>().moved == 0);
      CHECK(mesh.traffic<tp>().moved == 0);
    });
  });
}

TEST_CASE("dry: tensors have extents and no elements; the program's own numbers are numbers") {
  launch_dry(3, [](Communicator& world) {
    const Grid mesh(world, {3, 1});
    const Vector<Shard<flat, dp>> x(mesh, {std::size_t{1} << 36});  // 256 GiB
    CHECK(x.size() == std::size_t{1} << 36);
    CHECK(x.local().empty());
    CHECK(x.range<flat>().size >= (std::size_t{1} << 36) / 3);
    CHECK(mesh.memory().total().current == x.range<flat>().size * sizeof(float));
    std::array<int, 2> numbers{world.rank(), 1};
    all_reduce(world, numbers);
    CHECK(numbers == std::array{3, 3});
    Communicator pair = world.split(world.rank() % 2);
    std::array<int, 1> one{1};
    all_reduce(pair, one);
    CHECK(one[0] == pair.size());
  });
}

TEST_CASE("dry: ranks without elements take part, or not, as the others do") {
  using Matrix = Dims<hidden, ffn>;
  launch_dry(5, LaunchOptions{20}, [](Communicator& world) {
    const Grid mesh(world, {5, 1});
    // Extents of 2 and 3 on 5 ranks: of whole pages, of single elements, and of nothing.
    for (const std::size_t width : {std::size_t{0}, std::size_t{3}, std::size_t{1024}}) {
      const Tensor<float, Matrix, Layout<Grid, Shard<hidden, dp>>> rows(mesh, {2, width});
      const auto all = convert<Replicate<dp>>(rows);
      CHECK(all.size() == 2 * width);
      const Tensor<float, Matrix, Layout<Grid, Partial<dp>>> owed(mesh, {2, width});
      CHECK(convert<Shard<hidden, dp>>(owed).size() == rows.size());
      CHECK(convert<Shard<ffn, dp>>(rows).extents() == rows.extents());
    }
  });
}

TEST_CASE("dry: one mesh may be dry beside another one that is not") {
  launch(2, [](Communicator& world) {
    Communicator second = dry(world.split(0));
    const Grid real(world, {2, 1}), counted(second, {2, 1});
    const Vector<Partial<dp>> x(real, {10}), y(counted, {10});
    CHECK(convert<Replicate<dp>>(x).local().size() == 10);
    CHECK(convert<Replicate<dp>>(y).local().empty());
    CHECK(real.traffic<dp>().volume == counted.traffic<dp>().volume);
    Communicator empty;
    CHECK_THROWS_AS(static_cast<void>(dry(std::move(empty))), Error);
  });
}

}  // namespace
