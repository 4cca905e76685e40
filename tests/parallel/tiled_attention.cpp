// SPDX-License-Identifier: Apache-2.0
#include "meshwise/parallel/tiled_attention.hpp"

#include <doctest/doctest.h>

#include "block_support.hpp"

namespace {

using namespace test;

using Mesh3 = Mesh<dp, cp, tp>;

template <Recompute R, Gathered G, bool sp>
struct Ring : BlockForm {
  using sequence = Along<Zigzag<cp>>;
  using attention = RingAttention<cp>;
  static constexpr bool sequence_parallel = sp;
  static constexpr Recompute recompute = R;
  static constexpr Gathered gathered = G;
};
using Plain = TransformerBlock<double, Grid>;
struct Tiles : BlockForm {
  using attention = TiledAttention<>;
};
using Tiled = TransformerBlock<double, Grid, Tiles>;
template <Recompute R, Gathered G = Gathered::kept, bool sp = true>
using Cut = TransformerBlock<double, Mesh3, Ring<R, G, sp>>;

// Labels are shifted and positions counted by global index: nothing else of a block depends on where tokens are.
static_assert(
    std::is_same_v<Cut<Recompute::none>::X::layout, Layout<Mesh3, Shard<batch, dp>, Shard<seq, Zigzag<cp>, tp>>>);
static_assert(std::is_same_v<decltype(Cut<Recompute::none>::Gradients::norm1_gain)::value_type::layout,
                             Layout<Mesh3, Partial<dp>, Partial<cp>, Partial<tp>>>);
static_assert(
    std::is_same_v<decltype(Cut<Recompute::none, Gathered::kept, false>::Gradients::norm1_gain)::value_type::layout,
                   Layout<Mesh3, Partial<dp>, Partial<cp>>>);
static_assert(
    std::is_same_v<decltype(Cut<Recompute::none, Gathered::kept, false>::Gradients::key_weight)::value_type::layout,
                   Layout<Mesh3, Partial<dp>, Partial<cp>, Shard<heads, tp>>>);

std::vector<std::vector<double>> plain(const BlockSizes& z, double p) {
  std::vector<std::vector<double>> result;
  on_grid({1, 1}, [&](const Grid& mesh) { result = block_entire<Plain>(mesh, z, {p, 11, 12, {}}); });
  return result;
}

const BlockSizes some_sizes[] = {{}, {2, 13, 6, 3, 2, 7, 1}, {2, 1, 6, 3, 2, 7, 1}, {0, 5, 6, 3, 2, 7, 1}};

}  // namespace

TEST_CASE("tiled attention: a block without a matrix of scores computes what the block with it computes") {
  for (const BlockSizes& z : some_sizes) {
    const auto expected = plain(z, 0.3);
    for (const Ranks ranks : {Ranks{1, 1}, Ranks{2, 2}, Ranks{1, 4}}) {
      const Tiled::Drop drop{0.3, 11, 12, {}};
      CHECK_NOTHROW(
          on_grid(ranks, [&](const Grid& mesh) { require_same(block_entire<Tiled>(mesh, z, drop), expected); }));
    }
  }
}

TEST_CASE(
    "ring attention in a block: context, tensor and sequence parallelism together compute what one rank computes") {
  struct Three {
    int dp, cp, tp;
  };
  for (const BlockSizes& z : some_sizes) {
    const auto expected = plain(z, 0.3);
    for (const Three n : {Three{1, 1, 1}, Three{1, 2, 1}, Three{1, 3, 2}, Three{2, 2, 2}}) {
      CAPTURE(z.s);
      CAPTURE(n.cp);
      CAPTURE(n.tp);
      const auto all = [&](Communicator& world) {
        const Mesh3 mesh(world, {n.dp, n.cp, n.tp});
        require_same(block_entire<Cut<Recompute::none>>(mesh, z, {0.3, 11, 12, {}}), expected);
        require_same(block_entire<Cut<Recompute::selective, Gathered::again>>(mesh, z, {0.3, 11, 12, {}}), expected);
        require_same(block_entire<Cut<Recompute::full, Gathered::kept, false>>(mesh, z, {0.3, 11, 12, {}}), expected);
      };
      LaunchOptions options;
      options.deadline = 120;
      CHECK_NOTHROW(launch(n.dp * n.cp * n.tp, options, all));
    }
  }
}

TEST_CASE("tiled attention: dropout of probabilities is refused, with what else there is") {
  on_grid({1, 2}, [](const Grid& mesh) {
    const auto w = block_parameters<Tiled::Parameters>(mesh, {});
    try {
      static_cast<void>(Tiled::forward(w, block_input<Tiled>(mesh, {}), {0, 1, 2, {0.1, 3}}));
      require(false, "refused");
    } catch (const Error& e) {
      require(std::string(e.what()).find("CausalScores") != std::string::npos, e.what());
    }
  });
}
