// SPDX-License-Identifier: Apache-2.0
// A rank that throws, or returns early, between any two calls that the typed layer makes of its fabric: every other
// rank gets an Error that names it, and nobody waits for a deadline.
#include <doctest/doctest.h>

#include "../support/mortal.hpp"
#include "meshwise/tensor/arg_max.hpp"
#include "meshwise/tensor/inside.hpp"
#include "meshwise/tensor/replicas.hpp"
#include "meshwise/tensor/reshard.hpp"
#include "meshwise/tensor/stream.hpp"
#include "meshwise/tensor/top_k.hpp"
#include "support.hpp"

namespace test {
namespace {

using Square = Dims<d0, d1>;
template <class... Ps>
using T = Tensor<double, Square, On<Ps...>>;

TEST_CASE("a rank dies in an exchange") {
  check_deaths(
      {1, 3},
      [](const Grid& mesh) {
        const T<Shard<d0, Zigzag<tp>>> x(mesh, {61, 40});
        static_cast<void>(convert<Shard<d0, tp>>(x));
        static_cast<void>(convert<Shard<d1, tp>>(x));
      },
      2);
}

TEST_CASE("a rank dies between the steps of a plan") {
  using From = T<Shard<d0, Zigzag<dp>>, Partial<tp>>;
  using To = On<Shard<d0, dp>>;
  static_assert(plan<From::layout, To, Square>.count == 2);
  check_deaths(
      {2, 2},
      [](const Grid& mesh) {
        static_cast<void>(reshard<To>(From(mesh, {60, 41})));
      },
      2);
}

TEST_CASE("a rank dies in a stream") {
  check_deaths(
      {1, 3},
      [](const Grid& mesh) {
        const T<Shard<d0, tp>> x(mesh, {200, 150});
        static_cast<void>(stream<tp>(x, [](const auto& piece, int) { return piece; }));
      },
      4);
}

TEST_CASE("a rank dies in choices that are made by all ranks") {
  check_deaths(
      {2, 2},
      [](const Grid& mesh) {
        const T<Shard<d1, dp, tp>> x(mesh, {5, 30});
        static_cast<void>(distributed_arg_max<d1>(x));
        static_cast<void>(distributed_top_k<d1>(x, 4));
      },
      4);
}

TEST_CASE("a rank dies in comparisons of replicas, and in claims") {
  check_deaths(
      {1, 3},
      [](const Grid& mesh) {
        const T<> x(mesh, {50, 4});
        check_replicas(x);
        const auto parts = outside<Shard<d0, Counted<tp>>>(mesh, inside<tp>(x));
        static_cast<void>(convert<Shard<d0, tp>>(parts));
      },
      3);
}

}  // namespace
}  // namespace test
