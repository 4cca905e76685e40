// SPDX-License-Identifier: Apache-2.0
// Grouped-query heads in a block: over one tensor axis, and over two where there are more ranks than heads of keys.
#include <doctest/doctest.h>

#include "block_support.hpp"
#include "meshwise/parallel/attention_core.hpp"
#include "meshwise/parallel/projection.hpp"

namespace {

using namespace test;

struct kx : axis {};  // splits heads of queries and of keys
struct qx : axis {};  // splits heads of queries, replicates those of keys
using Mesh3 = Mesh<dp, kx, qx>;

template <class Tensor, class Keys>
struct Shape : BlockShape {
  using tensor = Tensor;
  using keys = SharedHeads<Keys>;
};
template <class Tensor, class Keys, bool sp = true, Recompute R = Recompute::none>
struct Form : BlockForm {
  using shape = Shape<Tensor, Keys>;
  static constexpr bool sequence_parallel = sp;
  static constexpr Recompute recompute = R;
};
using Each = TransformerBlock<double, Grid>;
using Groups = TransformerBlock<double, Grid, Form<Along<tp>, Along<tp>>>;          // keys are split like queries
using OneForAll = TransformerBlock<double, Grid, Form<Along<tp>, Along<>, false>>;  // every rank has all keys
using TwoAxes = TransformerBlock<double, Mesh3, Form<Along<kx, qx>, Along<kx>, true, Recompute::selective>>;
using TwoAxesAlike = TransformerBlock<double, Mesh3, Form<Along<kx, qx>, Along<kx>, false>>;

// What ranks hold alike and use for other queries owes a sum, with and without sequence parallelism.
template <class B>
using KeyGradient = typename std::remove_cvref_t<decltype(B::Gradients::key_weight)>::value_type::layout;
template <class B>
using GainGradient = typename std::remove_cvref_t<decltype(B::Gradients::norm1_gain)>::value_type::layout;
static_assert(std::is_same_v<KeyGradient<TwoAxes>, Layout<Mesh3, Partial<dp>, Shard<kv, kx>, Partial<qx>>>);
static_assert(std::is_same_v<KeyGradient<TwoAxesAlike>, Layout<Mesh3, Partial<dp>, Shard<kv, kx>, Partial<qx>>>);
static_assert(std::is_same_v<KeyGradient<OneForAll>, Layout<Grid, Partial<dp>, Partial<tp>>>);
static_assert(std::is_same_v<KeyGradient<Groups>, Layout<Grid, Partial<dp>, Shard<kv, tp>>>);
static_assert(std::is_same_v<GainGradient<TwoAxes>, Layout<Mesh3, Partial<dp>, Partial<kx>, Partial<qx>>>);
static_assert(std::is_same_v<GainGradient<TwoAxesAlike>, Layout<Mesh3, Partial<dp>>>);
static_assert(std::is_same_v<TwoAxes::X::layout, Layout<Mesh3, Shard<batch, dp>, Shard<seq, kx, qx>>>);

template <class B>
typename B::Drop drop_of(double p) {
  return {p, 11, 12, {p, 13}};
}

template <class B>
std::vector<std::vector<double>> on_one_rank(const BlockSizes& z, double p) {
  std::vector<std::vector<double>> result;
  on_grid({1, 1}, [&](const Grid& mesh) { result = block_entire<B>(mesh, z, drop_of<B>(p)); });
  return result;
}

struct Three {
  int dp, kx, qx;
};
template <class F>
void on_three(const Three& n, const F& program) {
  LaunchOptions options;
  options.deadline = 120;
  launch(n.dp * n.kx * n.qx, options, [&](Communicator& world) { program(Mesh3(world, {n.dp, n.kx, n.qx})); });
}

const BlockSizes two_of_six{3, 5, 6, 6, 2, 7, 2};

}  // namespace

TEST_CASE("grouped heads: the same as heads whose keys and values are copies, with gradients summed over the copies") {
  on_grid({1, 1}, [](const Grid& mesh) {
    const BlockSizes z = two_of_six;
    const std::size_t group = z.heads / z.kv;
    const auto w = block_parameters<Groups::Parameters>(mesh, z);
    auto copies = block_parameters<Each::Parameters>(mesh, z);
    copies.query_weight = w.query_weight, copies.query_bias = w.query_bias;
    copies.output_weight = w.output_weight, copies.output_bias = w.output_bias;
    copies.norm1_gain = w.norm1_gain, copies.norm1_bias = w.norm1_bias;
    copies.norm2_gain = w.norm2_gain, copies.norm2_bias = w.norm2_bias;
    copies.up_weight = w.up_weight, copies.up_bias = w.up_bias;
    copies.down_weight = w.down_weight, copies.down_bias = w.down_bias;
    const auto copy = [&](const auto& few, auto& many) {
      const auto from = few.local();
      const auto to = many.mutable_local();
      const std::size_t row = z.heads * z.head_dim;
      for (std::size_t i = 0; i < to.size(); ++i) {
        const std::size_t head = i % row / z.head_dim / group;
        to[i] = from[(i / row * z.kv + head) * z.head_dim + i % z.head_dim];
      }
    };
    copy(w.key_weight, copies.key_weight), copy(w.key_bias, copies.key_bias);
    copy(w.value_weight, copies.value_weight), copy(w.value_bias, copies.value_bias);
    const auto x = block_input<Each>(mesh, z), dy = block_upstream<Each>(mesh, z);
    const auto few = Groups::forward(w, x, drop_of<Groups>(0.2));
    const auto many = Each::forward(copies, x, drop_of<Each>(0.2));
    require_near(entire(few.first), entire(many.first), 1e-13, "the result");
    const auto [dx, g] = Groups::backward(w, few.second, dy, drop_of<Groups>(0.2));
    const auto [dx_many, g_many] = Each::backward(copies, many.second, dy, drop_of<Each>(0.2));
    require_near(entire(dx), entire(dx_many), 1e-12, "the gradient of the input");
    const auto sums = [&](const auto& found, const auto& all, const char* what) {
      const auto values = entire(*all);
      std::vector<double> sum(found->size());
      const std::size_t row = z.heads * z.head_dim;
      for (std::size_t i = 0; i < values.size(); ++i) {
        sum[(i / row * z.kv + i % row / z.head_dim / group) * z.head_dim + i % z.head_dim] += values[i];
      }
      require_near(entire(*found), sum, 1e-12, what);
    };
    sums(g.key_weight, g_many.key_weight, "keys"), sums(g.key_bias, g_many.key_bias, "biases of keys");
    sums(g.value_weight, g_many.value_weight, "values"), sums(g.value_bias, g_many.value_bias, "biases of values");
    require_near(entire(*g.query_weight), entire(*g_many.query_weight), 1e-12, "queries");
  });
}

TEST_CASE("grouped heads: the gradients are derivatives where ranks share keys") {
  const BlockSizes z{2, 3, 6, 4, 2, 5, 1};
  on_three({1, 1, 2}, [&](const Mesh3& mesh) { check_derivatives<TwoAxes>(mesh, z, drop_of<TwoAxes>(0.2)); });
}

TEST_CASE("grouped heads: any ranks compute what one rank computes, with fewer heads of keys than ranks too") {
  for (const double p : {0.0, 0.3}) {
    const auto expected = on_one_rank<Groups>(two_of_six, p);
    for (const Ranks ranks : {Ranks{1, 2}, Ranks{2, 2}}) {
      CHECK_NOTHROW(on_grid(ranks, [&](const Grid& mesh) {
        require_same(block_entire<Groups>(mesh, two_of_six, drop_of<Groups>(p)), expected);
      }));
    }
    for (const Ranks ranks : {Ranks{1, 1}, Ranks{2, 3}, Ranks{1, 4}}) {
      CHECK_NOTHROW(on_grid(ranks, [&](const Grid& mesh) {
        require_same(block_entire<OneForAll>(mesh, two_of_six, drop_of<OneForAll>(p)), expected);
      }));
    }
    for (const Three n : {Three{1, 1, 1}, Three{1, 2, 1}, Three{1, 2, 2}, Three{2, 2, 2}, Three{1, 2, 4}}) {
      CAPTURE(n.kx);
      CAPTURE(n.qx);
      CHECK_NOTHROW(on_three(n, [&](const Mesh3& mesh) {
        require_same(block_entire<TwoAxes>(mesh, two_of_six, drop_of<TwoAxes>(p)), expected);
        require_same(block_entire<TwoAxesAlike>(mesh, two_of_six, drop_of<TwoAxesAlike>(p)), expected);
      }));
    }
  }
}

TEST_CASE("grouped heads: one head of keys, one token, no batch") {
  for (const BlockSizes& z : {BlockSizes{1, 1, 3, 2, 2, 3, 1}, BlockSizes{0, 3, 3, 4, 1, 3, 1}}) {
    const auto expected = on_one_rank<Groups>(z, 0.1);
    for (const Three n : {Three{1, 1, 3}, Three{2, 1, 2}}) {
      CHECK_NOTHROW(on_three(n, [&](const Mesh3& mesh) {
        require_same(block_entire<TwoAxes>(mesh, z, drop_of<TwoAxes>(0.1)), expected);
      }));
    }
  }
}

TEST_CASE("grouped heads: ranks that do not divide the heads of keys are refused, with the remedy") {
  try {
    on_grid({1, 3}, [](const Grid& mesh) {
      const auto w = block_parameters<Groups::Parameters>(mesh, two_of_six);
      static_cast<void>(Groups::forward(w, block_input<Groups>(mesh, two_of_six), {}));
    });
    FAIL("refused");
  } catch (const std::exception& e) {
    CHECK(std::string(e.what()).find("shard it over fewer ranks and the heads over one more axis") !=
          std::string::npos);
  }
}
