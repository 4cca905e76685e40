// SPDX-License-Identifier: Apache-2.0
#include "meshwise/trace/ledger.hpp"

#include <doctest/doctest.h>

#include "../support/launch.hpp"
#include "meshwise/tensor/convert.hpp"

using namespace meshwise;

namespace {

using Grid = Mesh<dp, tp>;
using Whole = Tensor<double, Dims<batch, hidden>, Layout<Grid>>;

}  // namespace

TEST_CASE("the ledger adds up over ranks, by axis, exactly as the transition table says, uneven parts included") {
  for (const std::size_t rows : {std::size_t{0}, std::size_t{1}, std::size_t{5}, std::size_t{7}}) {
    launch(6, [rows](Communicator& world) {
      const Grid mesh(world, {2, 3});
      const Whole x(mesh, {rows, 3});
      const auto split = view_as<Shard<batch, tp>>(x);
      const auto before = traffic_of(mesh);
      const auto gathered = convert<Replicate<tp>>(split);
      const auto reduced = convert<Replicate<dp>>(view_as<Partial<dp>>(x));
      const Ledger ledger = collect_ledger(mesh, before);
      const std::uint64_t bytes = rows * 3 * sizeof(double);
      REQUIRE(ledger.axes.size() == 2);
      CHECK(ledger.axes[0].name == "dp");
      CHECK(ledger.axes[1].name == "tp");
      CHECK(ledger.axes[0].ranks == 2);
      CHECK(ledger.axes[1].ranks == 3);
      CHECK(ledger.axes[0].traffic.calls == 6);
      CHECK(ledger.axes[1].traffic.calls == 6);
      CHECK(ledger.axes[0].traffic.volume == 3 * 2 * 1 * bytes);  // three groups of two, an all_reduce each
      CHECK(ledger.axes[1].traffic.volume == 2 * 2 * bytes);      // two groups of three, an all_gather each
      CHECK(ledger.axes[0].traffic.moved == ledger.axes[0].traffic.volume);
      CHECK(ledger.axes[1].traffic.moved == ledger.axes[1].traffic.volume);
    });
  }
}

TEST_CASE("what goes over several axes at once is counted once, apart from the axes") {
  launch(6, [](Communicator& world) {
    const Grid mesh(world, {2, 3});
    using Owed = Tensor<double, Dims<batch, hidden>, Layout<Grid, Partial<dp>, Partial<tp>>>;
    const Owed x(mesh, {5, 3});
    const Whole first = convert<Replicate<dp>, Replicate<tp>>(x);
    const auto since = group_traffic_of(mesh);
    const Whole second = convert<Replicate<dp>, Replicate<tp>>(x);
    const Ledger ledger = collect_ledger(mesh, {}, since);
    REQUIRE(ledger.groups.size() == 1);
    CHECK(ledger.groups[0].name == "dp+tp");
    CHECK(ledger.groups[0].ranks == 6);
    CHECK(ledger.groups[0].traffic.calls == 6);
    CHECK(ledger.groups[0].traffic.volume == 2 * 5 * 15 * sizeof(double));
    CHECK(ledger.axes[0].traffic.volume == 0);
    CHECK(collect_ledger(mesh).groups[0].traffic.calls == 12);
  });
  launch(2, [](Communicator& world) { CHECK(collect_ledger(Grid(world, {1, 2})).groups.empty()); });
}

TEST_CASE("memory is counted by category: what is in use, the peak, and the largest rank") {
  launch(3, [](Communicator& world) {
    const Mesh<dp> mesh(world, {3});
    using Split = Tensor<float, Dims<batch>, Layout<Mesh<dp>, Shard<batch, dp>>>;
    const CategoryScope scope(mesh.memory(), Category::optimizer);
    const Split kept(mesh, {10});
    { const Split gone(mesh, {10}); }
    const Ledger ledger = collect_ledger(mesh);
    const auto& entry = ledger.memory[static_cast<std::size_t>(Category::optimizer)];
    CHECK(entry.category == Category::optimizer);
    CHECK(entry.current == 40);
    CHECK(entry.peak == 80);
    CHECK(entry.largest_peak == 2 * 4 * sizeof(float));
    CHECK(ledger.memory[static_cast<std::size_t>(Category::gradients)].peak == 0);
  });
}
