// SPDX-License-Identifier: Apache-2.0
#include "meshwise/train/clip.hpp"

#include <doctest/doctest.h>

#include "../parallel/support.hpp"
#include "meshwise/tensor/elementwise.hpp"
#include "meshwise/tensor/scale.hpp"
#include "meshwise/train/adamw.hpp"
#include "meshwise/train/global_norm.hpp"

namespace {

using namespace test;

template <class E, class... Ps>
using Matrix = Tensor<E, Dims<hidden, ffn>, Layout<Grid, Ps...>>;

}  // namespace

TEST_CASE("clip: laws") {
  const double infinite = HUGE_VAL;
  for (const double norm : {0.0, 0.25, 1.0}) {
    CHECK(clip(norm, 1).gradient_scale() == 1);
    CHECK(clip(norm, 1).norm() == norm);
  }
  for (const double norm : {1.5, 2.0, 1e30, 1e300}) {
    CHECK(clip(norm, 1).gradient_scale() * norm == doctest::Approx(1));
    CHECK(clip(norm, infinite).gradient_scale() == 1);
  }
  CHECK(clip(4, 0.5).gradient_scale() == 0.125);
  // The norm of gradients that carry a loss scale is compared without it, and the scale is taken off once.
  for (const double scale : {1.0, 2.0, 1024.0, 65536.0}) {
    for (const double norm : {0.0, 0.25, 1.0, 3.0}) {
      const Clipped with = clip(norm * scale, 1, scale), without = clip(norm, 1);
      CHECK(with.norm() == norm);
      CHECK(with.gradient_scale() * scale == without.gradient_scale());
      CHECK(with.finite());
    }
  }
}

TEST_CASE("clip: a norm that is no number is a skipped step, or an error for those who do not ask") {
  for (const double norm : {HUGE_VAL, std::nan("")}) {
    for (const double most : {1.0, HUGE_VAL}) {
      const Clipped clipped = clip(norm, most, 1024);
      CHECK(!clipped.finite());
      CHECK_THROWS_WITH_AS(static_cast<void>(clipped.gradient_scale()), doctest::Contains("skip the step"), Error);
    }
  }
  CHECK_THROWS_WITH_AS(static_cast<void>(clip(1, 0)), doctest::Contains("positive bound"), Error);
  CHECK_THROWS_AS(static_cast<void>(clip(1, -1)), Error);
  CHECK_THROWS_AS(static_cast<void>(clip(1, std::nan(""))), Error);
  CHECK_THROWS_WITH_AS(static_cast<void>(clip(1, 1, 0)), doctest::Contains("loss scale"), Error);
  CHECK_THROWS_AS(static_cast<void>(clip(1, 1, HUGE_VAL)), Error);
}

TEST_CASE("clip norm over replicated parameters: the parameters after a step are those of one rank, to the bit") {
  // Counting a replica once per rank would make the norm depend on the mesh, and so the parameters.
  std::vector<double> expected;
  const auto train = [&](const Grid& mesh, auto matrix, auto vector) {
    using W = typename decltype(matrix)::type;
    using B = typename decltype(vector)::type;
    auto w = random<W>(mesh, {5, 7}, 1);
    auto b = random<B>(mesh, {7}, 2);
    AdamWState<W> of_w(w);
    AdamWState<B> of_b(b);
    for (std::uint64_t step = 1; step <= 5; ++step) {
      const auto dw = random<W>(mesh, {5, 7}, 10 + step);
      const auto db = random<B>(mesh, {7}, 20 + step);
      const Clipped clipped = clip(GlobalNorm<Grid>(mesh).add(dw).add(db).norm(), 0.5);
      require(clipped.norm() > 0.5, "something to clip");
      adamw_step(w, dw, of_w, step, {.epsilon = 0.1}, clipped.gradient_scale());
      adamw_step(b, db, of_b, step, {.epsilon = 0.1}, clipped.gradient_scale());
    }
    auto all = whole(w);
    const auto more = whole(b);
    all.insert(all.end(), more.begin(), more.end());
    if (mesh.world().size() == 1) {
      expected = all;
    } else {
      require(all == expected, "the same bits as on one rank");
    }
  };
  using V = Dims<ffn>;
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{2, 2}, Ranks{3, 2}, Ranks{8, 1}, Ranks{1, 9}}) {
    on_grid(ranks, [&](const Grid& mesh) {
      const auto replicated = std::type_identity<Matrix<float>>{};
      const auto vector = std::type_identity<Tensor<float, V, Layout<Grid>>>{};
      train(mesh, replicated, vector);
      train(mesh, std::type_identity<Matrix<float, Shard<ffn, tp>>>{}, vector);
      train(mesh, std::type_identity<Matrix<float, Shard<hidden, dp>, Shard<ffn, tp>>>{},
            std::type_identity<Tensor<float, V, Layout<Grid, Shard<ffn, dp>>>>{});
    });
  }
}
