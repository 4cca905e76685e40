// SPDX-License-Identifier: Apache-2.0
#include "meshwise/parallel/transformer.hpp"

#include <doctest/doctest.h>

#include "block_support.hpp"

namespace {

using namespace test;

using Block = TransformerBlock<double, Grid>;
using Parameters = Block::Parameters;
using X = Block::X;

// Under sequence parallelism a rank sees its own tokens only: what it replicates owes a sum over tp too.
using OwedVector = Tensor<double, Dims<hidden>, Layout<Grid, Partial<dp>, Partial<tp>>>;
static_assert(std::is_same_v<decltype(Block::Gradients::norm1_gain)::value_type, OwedVector>);
static_assert(std::is_same_v<decltype(Block::Gradients::norm2_bias)::value_type, OwedVector>);
static_assert(std::is_same_v<decltype(Block::Gradients::output_bias)::value_type, OwedVector>);
static_assert(std::is_same_v<decltype(Block::Gradients::up_bias)::value_type,
                             Tensor<double, Dims<ffn>, Layout<Grid, Partial<dp>, Shard<ffn, tp>>>>);

using Sizes = BlockSizes;

X input(const Grid& mesh, const Sizes& z) { return block_input<Block>(mesh, z); }
X upstream(const Grid& mesh, const Sizes& z) { return block_upstream<Block>(mesh, z); }
Parameters make(const Grid& mesh, const Sizes& z) { return block_parameters<Parameters>(mesh, z); }

/// The same without sequence parallelism: activations between blocks are replicated, and so is the gradient of what
/// all ranks have done alike.
struct Replicated : BlockForm {
  static constexpr bool sequence_parallel = false;
};
using Alike = TransformerBlock<double, Grid, Replicated>;
using Vector = Tensor<double, Dims<hidden>, Layout<Grid, Partial<dp>>>;
static_assert(std::is_same_v<decltype(Alike::Gradients::norm1_gain)::value_type, Vector>);
static_assert(std::is_same_v<decltype(Alike::Gradients::output_bias)::value_type, Vector>);
static_assert(std::is_same_v<Alike::X, Alike::Full>);

/// The result, the gradient of the input and the gradients of the parameters, whole.
std::vector<std::vector<double>> run(Ranks ranks, const Sizes& z, const Block::Drop& drop) {
  std::vector<std::vector<double>> result;
  on_grid(ranks, [&](const Grid& mesh) {
    auto all = block_entire<Block>(mesh, z, drop);
    if (mesh.is_first()) result = std::move(all);
  });
  return result;
}

void same(const std::vector<std::vector<double>>& found, const std::vector<std::vector<double>>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CHECK(difference(found[i], expected[i], 1.0) < 1e-12);
  }
}

}  // namespace

TEST_CASE("transformer block: the gradients are derivatives, on one rank and on several") {
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{2, 2}, Ranks{1, 4}}) {
    CAPTURE(ranks.data);
    CAPTURE(ranks.tensor);
    CHECK_NOTHROW(on_grid(ranks, [](const Grid& mesh) { check_derivatives<Block>(mesh, {}, {}); }));
  }
  const Block::Drop drop{0.3, 11, 12, {0.4, 13}};
  CHECK_NOTHROW(on_grid({1, 2}, [&](const Grid& mesh) { check_derivatives<Block>(mesh, {}, drop); }));
}

TEST_CASE("transformer block: any ranks compute what one rank computes, norm weights and row biases included") {
  const std::vector<Ranks> some{{2, 1}, {1, 2}, {3, 2}, {1, 4}, {2, 4}, {1, 9}};
  for (const Block::Drop& drop : {Block::Drop{}, Block::Drop{0.3, 11, 12, {0.2, 13}}}) {
    const auto one = run(Ranks{1, 1}, {}, drop);
    for (const Ranks ranks : some) {
      CAPTURE(ranks.data);
      CAPTURE(ranks.tensor);
      same(run(ranks, {}, drop), one);
      const Alike::Drop alike{drop.p, drop.attention_seed, drop.mlp_seed, drop.scores};
      CHECK_NOTHROW(on_grid(ranks, [&](const Grid& mesh) { require_same(block_entire<Alike>(mesh, {}, alike), one); }));
    }
  }
}

TEST_CASE("transformer block: dropout of probabilities changes the result, and each seed draws its own") {
  on_grid({1, 2}, [](const Grid& mesh) {
    const auto with = [&](const ScoreDrop& scores) {
      const auto all = block_entire<Block>(mesh, {}, {0, 11, 12, scores});
      return all[0];
    };
    require(with({0.5, 1}) != with({0, 1}) && with({0.5, 1}) != with({0.5, 2}), "drawn by the seed");
    require(with({0.5, 1}) == with({0.5, 1}) && with({0, 1}) == with({0, 2}), "and by nothing else");
  });
}

TEST_CASE("transformer block: sequences of one token, one head, no batch: ranks without work still take part") {
  for (const Sizes& z :
       {Sizes{2, 1, 6, 3, 2, 7}, Sizes{3, 5, 4, 1, 4, 1}, Sizes{1, 3, 1, 2, 3, 2}, Sizes{0, 5, 6, 3, 2, 7}}) {
    const auto one = run(Ranks{1, 1}, z, {});
    for (const Ranks ranks : {Ranks{1, 4}, Ranks{3, 2}}) {
      CAPTURE(ranks.data);
      CAPTURE(z.b);
      CAPTURE(z.s);
      same(run(ranks, z, {}), one);
    }
  }
}

TEST_CASE("transformer block: a token changes nothing before it, and nothing in other sequences") {
  on_grid({2, 2}, [](const Grid& mesh) {
    const Sizes z;
    const auto w = make(mesh, z);
    const auto before = whole(Block::forward(w, input(mesh, z), {}).first);
    auto values = whole(input(mesh, z));
    const std::size_t b = 1, s = 2;
    for (std::size_t i = 0; i < z.h; ++i) values[(b * z.s + s) * z.h + i] += static_cast<double>(i);
    const auto after = whole(Block::forward(w, placed<X>(mesh, {z.b, z.s, z.h}, values), {}).first);
    for (std::size_t i = 0; i < before.size(); ++i) {
      const std::size_t token = i / z.h;
      const bool sees = token / z.s == b && token % z.s >= s;
      require((before[i] != after[i]) == sees, "causality at " + std::to_string(i));
    }
  });
}

TEST_CASE("transformer block: four all-gathers and four reduce-scatters over tp, and nothing over dp") {
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{3, 1}, Ranks{1, 2}, Ranks{2, 3}, Ranks{2, 4}}) {
    CAPTURE(ranks.data);
    CAPTURE(ranks.tensor);
    const auto check = [](const Grid& mesh) {
      const Sizes z;
      const Block::Drop drop{0.1, 1, 2};
      const auto w = make(mesh, z);
      const X x = input(mesh, z), dy = upstream(mesh, z);
      std::optional<std::pair<X, Block::Saved>> result;
      const Traffic before_dp = mesh.along<dp>().traffic();
      const Traffic forward = traffic_of<tp>(mesh, [&] { result.emplace(Block::forward(w, x, drop)); });
      const Traffic backward = traffic_of<tp>(mesh, [&] { Block::backward(w, result->second, dy, drop); });
      require(mesh.along<dp>().traffic() == before_dp, "gradients owe their sum over dp");
      const auto t = static_cast<std::uint64_t>(mesh.size<tp>());
      require(forward.calls == (t == 1 ? 0 : 4), "forward: two all-gathers, two reduce-scatters");
      require(backward.calls == (t == 1 ? 0 : 4), "backward: the same");
      // Per dp coordinate 4 (t-1) b_local s h elements each way: all of them together hold the batch once.
      const std::uint64_t each_way = 4 * (t - 1) * z.b * z.s * z.h * sizeof(double);
      require(sum_over_ranks(mesh, forward.volume) == each_way, "volume of the forward");
      require(sum_over_ranks(mesh, backward.volume) == each_way, "volume of the backward");
    };
    CHECK_NOTHROW(on_grid(ranks, check));
  }
}
