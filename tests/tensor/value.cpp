// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/value.hpp"

#include <doctest/doctest.h>

#include "meshwise/tensor/reductions.hpp"
#include "support.hpp"

using namespace meshwise;

namespace {

using Grid = Mesh<dp, tp>;
using Rows = Tensor<double, Dims<batch>, Layout<Grid, Shard<batch, dp>>>;
using Owing = Tensor<double, Dims<>, Layout<Grid, Partial<dp>>>;

template <class T>
concept can_value = requires(const T& x) {
  value(x);
};
static_assert(!can_value<Owing>, "a rank's summand is not the value");
static_assert(!can_value<Rows>, "only a tensor without dims is one number");
static_assert(can_value<Tensor<double, Dims<>, Layout<Grid>>>);

}  // namespace

TEST_CASE("value reads a number once its sum has been paid") {
  for (const int ranks : {1, 2, 3}) {
    test::on_grid({ranks, 1}, [](const test::Rank& rank) {
      Rows x(rank.mesh, {7});
      for (double& v : x.mutable_local()) v = 1;
      CHECK(value(convert<Replicate<dp>>(sum<batch>(x))) == 7);
    });
  }
}
