// SPDX-License-Identifier: Apache-2.0
#include "meshwise/trace/describe.hpp"

#include <doctest/doctest.h>

#include <string>

#include "../support/launch.hpp"
#include "meshwise/tensor/convert.hpp"

using namespace meshwise;

TEST_CASE("a ledger in text has a row for each axis, each set of axes and each category in use") {
  Ledger ledger;
  ledger.axes.push_back({"dp", 2, {3, 12, 4096, 4096}});
  ledger.axes.push_back({"tp", 16, {0, 0, 0, 0}});
  ledger.groups.push_back({"dp+tp", 32, {1, 2, 3, 1234567}});
  for (int c = 0; c < categories; ++c) ledger.memory[static_cast<std::size_t>(c)].category = static_cast<Category>(c);
  ledger.memory[2] = {Category::optimizer, 100, 200, 60, 110};
  CHECK(describe(ledger) ==
        "axis   ranks  calls  messages  volume    moved\n"
        "dp         2      3        12    4096     4096\n"
        "tp        16      0         0       0        0\n"
        "dp+tp     32      1         2       3  1234567\n"
        "\n"
        "memory     bytes  of one rank  peak  of one rank\n"
        "optimizer    100           60   200          110\n");
  CHECK(describe(Ledger()) == "axis  ranks  calls  messages  volume  moved\n");
}

TEST_CASE("the numbers are those of the ledger") {
  launch(3, [](Communicator& world) {
    const Mesh<dp> mesh(world, {3});
    const CategoryScope scope(mesh.memory(), Category::gradients);
    const Tensor<float, Dims<batch>, Layout<Mesh<dp>, Shard<batch, dp>>> x(mesh, {10});
    const Ledger ledger = collect_ledger(mesh);
    CHECK(ledger.memory[1].current == 40);
    CHECK(ledger.memory[1].largest == 16);
    const std::string text = describe(ledger);
    CHECK(text.find("dp        3      0") != std::string::npos);
    CHECK(text.find("gradients     40           16    40           16") != std::string::npos);
  });
}
