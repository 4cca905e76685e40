// SPDX-License-Identifier: Apache-2.0
#include "meshwise/parallel/gated_mlp.hpp"

#include <doctest/doctest.h>

#include "block_support.hpp"

namespace {

using namespace test;

struct Shape : BlockShape {
  using mlp = GatedMlp;
};
struct Form : BlockForm {
  using shape = Shape;
};
using Block = TransformerBlock<double, Grid, Form>;
using X = Block::Full;
using Weight = decltype(Block::Parameters::up_weight);
using Bias = decltype(Block::Parameters::up_bias);
using One = Tensor<double, Dims<hidden, ffn>, Layout<Grid, Shard<ffn, tp>>>;
using OneBias = Tensor<double, Dims<ffn>, Layout<Grid, Shard<ffn, tp>>>;
using H = Tensor<double, Dims<batch, seq, gate_and_up, ffn>, Layout<Grid, Shard<batch, dp>, Shard<ffn, tp>>>;
using U = Tensor<double, Dims<batch, seq, ffn>, Layout<Grid, Shard<batch, dp>, Shard<ffn, tp>>>;

template <class T>
concept can_gate = requires(const T& x) {
  swiglu(x);
};
template <class G, class T>
concept can_pull_back = requires(const G& g, const T& x) {
  swiglu_backward(g, x);
};
static_assert(std::is_same_v<Weight, Tensor<double, Dims<hidden, gate_and_up, ffn>, Layout<Grid, Shard<ffn, tp>>>>);
static_assert(can_gate<H> && can_pull_back<U, H>);
static_assert(!can_gate<U>, "no gate");
static_assert(!can_gate<Tensor<double, H::dims, Layout<Grid, Shard<gate_and_up, tp>>>>, "a gate without its up");
static_assert(!can_gate<Tensor<double, H::dims, Layout<Grid, Partial<tp>>>>, "SiLU of a sum is no sum");
static_assert(!can_pull_back<Tensor<double, U::dims, Layout<Grid>>, H>, "placed differently");

double silu(double x) { return x / (1 + std::exp(-x)); }

/// Gate and up as two column-parallel layers.
void separate_as_fused(const Grid& mesh, const BlockSizes& z) {
  const auto x = drawn<X>(mesh, z, 1, 1);
  const auto w = drawn<Weight>(mesh, z, 2, 1);
  const auto b = drawn<Bias>(mesh, z, 3, 1);
  const auto du = drawn<U>(mesh, z, 4, 1);
  const auto h = column_linear<hidden>(x, w, b);
  const U u = swiglu(h);
  const One gate_weight = take<gate_and_up>(w, 0), up_weight = take<gate_and_up>(w, 1);
  const OneBias gate_bias = take<gate_and_up>(b, 0), up_bias = take<gate_and_up>(b, 1);
  const U gate = column_linear<hidden>(x, gate_weight, gate_bias), up = column_linear<hidden>(x, up_weight, up_bias);
  const U expected = zip([](double g, double v) { return silu(g) * v; }, gate, up);
  require_near(entire(u), entire(expected), 1e-13, "u");

  const auto dh = swiglu_backward(du, h);
  const auto fused = column_linear_backward<Replicate<tp>>(dh, x, w);
  const U dgate = take<gate_and_up>(dh, 0), dup = take<gate_and_up>(dh, 1);
  require_near(entire(dup), entire(zip([](double d, double g) { return d * silu(g); }, du, gate)), 1e-13, "dup");
  const auto one = column_linear_backward<Replicate<tp>>(dgate, x, gate_weight);
  const auto other = column_linear_backward<Replicate<tp>>(dup, x, up_weight);
  require_near(entire(fused.x), entire(one.x + other.x), 1e-12, "dx");
  require_near(entire(take<gate_and_up>(fused.weight, 0)), entire(one.weight), 1e-13, "the gate's weight");
  require_near(entire(take<gate_and_up>(fused.weight, 1)), entire(other.weight), 1e-13, "the up's weight");
  require_near(entire(take<gate_and_up>(fused.bias, 1)), entire(other.bias), 1e-13, "the up's bias");
}

Block::Drop drop_of(double p) { return {p, 11, 12, {p, 13}}; }

}  // namespace

TEST_CASE("gated MLP: one product of both parts is what two layers give, with all gradients") {
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{2, 3}, Ranks{1, 9}}) {
    for (const BlockSizes& z : {BlockSizes{}, BlockSizes{1, 1, 1, 1, 1, 1}, BlockSizes{2, 3, 4, 1, 1, 0}}) {
      CHECK_NOTHROW(on_grid(ranks, [&](const Grid& mesh) { separate_as_fused(mesh, z); }));
    }
  }
}

TEST_CASE("gated MLP: the gradients of a block are derivatives, and any ranks compute what one rank computes") {
  const BlockSizes z{2, 3, 4, 2, 2, 5};
  CHECK_NOTHROW(on_grid({1, 2}, [&](const Grid& mesh) { check_derivatives<Block>(mesh, z, drop_of(0.2)); }));
  std::vector<std::vector<double>> expected;
  on_grid({1, 1}, [&](const Grid& mesh) { expected = block_entire<Block>(mesh, z, drop_of(0.2)); });
  for (const Ranks ranks : {Ranks{2, 1}, Ranks{1, 3}, Ranks{2, 4}}) {
    CHECK_NOTHROW(
        on_grid(ranks, [&](const Grid& mesh) { require_same(block_entire<Block>(mesh, z, drop_of(0.2)), expected); }));
  }
}

TEST_CASE("gated MLP: each rank has the gate of its own features, and the gathered weight is the same for all ranks") {
  on_grid({1, 3}, [](const Grid& mesh) {
    const BlockSizes z{1, 1, 2, 1, 1, 7};
    const auto w = generate<Weight>(mesh, {2, 2, 7}, [](const auto& i) { return static_cast<double>(i.linear); });
    const auto all = entire(w);
    for (std::size_t i = 0; i < all.size(); ++i) require(all[i] == static_cast<double>(i), "the order of the parts");
    const Range mine = w.range<ffn>();
    for (std::size_t part = 0; part < 2; ++part) {
      const double first = w.local()[part * mine.size];
      require(first == static_cast<double>(part * z.ffn + mine.begin), "gate and up of one feature lie together");
    }
  });
}

TEST_CASE("gated MLP: another number of parts is refused") {
  on_grid({1, 1}, [](const Grid& mesh) {
    const H h(mesh, {1, 1, 3, 2});
    try {
      static_cast<void>(swiglu(h));
      require(false, "refused");
    } catch (const Error& e) {
      require(std::string(e.what()).find("two parts, gate and up") != std::string::npos, e.what());
    }
  });
}
