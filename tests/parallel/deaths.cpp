// SPDX-License-Identifier: Apache-2.0
// A rank that dies in the middle of a strategy, with collectives in flight: every other rank gets an Error that names
// it, and nobody waits for a deadline.
#include <doctest/doctest.h>

#include <cstddef>

#include "../support/mortal.hpp"
#include "block_support.hpp"
#include "meshwise/parallel/context.hpp"
#include "meshwise/parallel/data.hpp"
#include "meshwise/parallel/ulysses.hpp"
#include "meshwise/parallel/zero.hpp"
#include "meshwise/train/all_finite.hpp"
#include "meshwise/train/global_norm.hpp"
#include "support.hpp"

namespace test {
namespace {

template <class D, class... Ps>
using On = Tensor<float, D, Layout<Grid, Ps...>>;
using Matrix = Dims<hidden, ffn>;
using Owed = On<Matrix, Partial<dp>>;

TEST_CASE("a rank dies while buckets are summed") {
  check_deaths(
      {3, 1},
      [](const Grid& mesh) {
        GradientBuckets<dp, float, Grid> buckets(mesh, 1000);
        const auto first = buckets.expect<On<Matrix>>({20, 30});
        const auto second = buckets.expect<On<Matrix>>({7, 31});
        buckets.add(second, Owed(mesh, {7, 31}));
        buckets.add(first, Owed(mesh, {20, 30}));
        buckets.finish();
        GlobalNorm<Grid> norm(mesh);
        norm.add(buckets.take(first));
        static_cast<void>(norm.norm());
        static_cast<void>(AllFinite<Grid>(mesh).add(buckets.take(second)).agreed());
      },
      4);
}

template <class Stage>
void step_of(const Grid& mesh) {
  Zero<Stage, float, Grid> zero(mesh);
  zero.begin_unit();
  const auto first = zero.add(On<Matrix>(mesh, {20, 30}));
  zero.begin_unit();
  const auto second = zero.add(On<Matrix>(mesh, {7, 31}));
  zero.forward(0, [&](const auto& w) { static_cast<void>(w[first]); });
  zero.forward(1, [&](const auto& w) { static_cast<void>(w[second]); });
  zero.backward(1, [&](const auto&, auto& gradients) { gradients.add(second, Owed(mesh, {7, 31})); });
  zero.backward(0, [&](const auto&, auto& gradients) { gradients.add(first, Owed(mesh, {20, 30})); });
  zero.finish();
  zero.update([](std::size_t, auto&, const auto&) {});
  zero.forward(0, [&](const auto& w) { static_cast<void>(w[first]); });
  zero.release();
}

TEST_CASE("a rank dies in a step of ZeRO") {
  check_deaths({3, 1}, step_of<Zero1<dp>>, 4);
  check_deaths({3, 1}, step_of<Zero3<dp>>, 6);
}

using Queries = On<Dims<batch, seq, heads, head_dim>, Shard<seq, tp>>;
using Keys = On<Dims<batch, key<seq>, kv, head_dim>, Shard<key<seq>, tp>>;

TEST_CASE("a rank dies while keys and values go round the ring") {
  check_deaths(
      {1, 3},
      [](const Grid& mesh) {
        const Queries q(mesh, {1, 64, 3, 16});
        const Keys k(mesh, {1, 64, 3, 16});
        const auto saved = ring_attention<tp>(q, k, k, CausalMask{}, 1.0);
        static_cast<void>(ring_attention_backward<tp>(q, q, k, k, saved, CausalMask{}, 1.0));
      },
      8);
}

TEST_CASE("a rank dies while a sequence becomes heads") {
  check_deaths(
      {1, 3},
      [](const Grid& mesh) {
        const Queries q(mesh, {1, 64, 3, 16});
        const Keys k(mesh, {1, 64, 3, 16});
        const auto saved = ulysses_attention<tp>(q, k, k, CausalMask{}, 1.0);
        static_cast<void>(ulysses_attention_backward(q, saved, CausalMask{}, 1.0));
      },
      8);
}

struct Regathering : BlockForm {
  static constexpr auto gathered = Gathered::again;
};

TEST_CASE("a rank dies in a transformer block, whose reductions and gathers are on their way while it computes") {
  check_deaths(
      {1, 3},
      [](const Grid& mesh) {
        const BlockSizes z{2, 5, 6, 3, 2, 7, 1};
        static_cast<void>(block_pieces<TransformerBlock<float, Grid, Regathering>>(mesh, z, {}));
      },
      10);
}

}  // namespace
}  // namespace test
