// SPDX-License-Identifier: Apache-2.0
#include "meshwise/parallel/transformer.hpp"

#include <doctest/doctest.h>

#include "support.hpp"

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

struct Sizes {
  std::size_t b = 3, s = 5, h = 6, heads = 3, head_dim = 2, ffn = 7;
};

/// Calls f(member of a, member of b) for all parameters.
template <class F, class... Bs>
void each(const F& f, Bs&... b) {
  f(b.norm1_gain...), f(b.norm1_bias...);
  f(b.query_weight...), f(b.query_bias...);
  f(b.key_weight...), f(b.key_bias...);
  f(b.value_weight...), f(b.value_bias...);
  f(b.output_weight...), f(b.output_bias...);
  f(b.norm2_gain...), f(b.norm2_bias...);
  f(b.up_weight...), f(b.up_bias...);
  f(b.down_weight...), f(b.down_bias...);
}

Parameters make(const Grid& mesh, const Sizes& z, std::uint64_t seed) {
  std::uint64_t stream = 0;
  const auto one = [&]<class T>(const Extents<typename T::dims>& extents) {
    return random<T>(mesh, extents, stream_seed(seed, stream++), 0.7);
  };
  const auto vector = [&] { return one.template operator()<Parameters::Vector>({z.h}); };
  const auto projection = [&] { return one.template operator()<Parameters::Projection>({z.h, z.heads, z.head_dim}); };
  const auto bias = [&] { return one.template operator()<Parameters::ProjectionBias>({z.heads, z.head_dim}); };
  return {vector(),
          vector(),
          projection(),
          bias(),
          projection(),
          bias(),
          projection(),
          bias(),
          one.template operator()<decltype(Parameters::output_weight)>({z.heads, z.head_dim, z.h}),
          vector(),
          vector(),
          vector(),
          one.template operator()<decltype(Parameters::up_weight)>({z.h, z.ffn}),
          one.template operator()<decltype(Parameters::up_bias)>({z.ffn}),
          one.template operator()<decltype(Parameters::down_weight)>({z.ffn, z.h}),
          vector()};
}

X input(const Grid& mesh, const Sizes& z) { return random<X>(mesh, {z.b, z.s, z.h}, 901); }
X upstream(const Grid& mesh, const Sizes& z) { return random<X>(mesh, {z.b, z.s, z.h}, 902); }

/// The result, the gradient of the input and the gradients of the parameters, whole.
std::vector<std::vector<double>> run(const Grid& mesh, const Sizes& z, const Block::Drop& drop) {
  const auto w = make(mesh, z, 3);
  const auto [y, saved] = Block::forward(w, input(mesh, z), drop);
  const auto [dx, gradients] = Block::backward(w, saved, upstream(mesh, z), drop);
  std::vector<std::vector<double>> all{whole(y), whole(dx)};
  each([&](const auto& g) { all.push_back(whole(*g)); }, gradients);
  return all;
}

std::vector<std::vector<double>> run(Ranks ranks, const Sizes& z, const Block::Drop& drop) {
  std::vector<std::vector<double>> result;
  on_grid(ranks, [&](const Grid& mesh) {
    auto all = run(mesh, z, drop);
    if (mesh.is_first()) result = std::move(all);
  });
  return result;
}

/// The derivative of <forward, upstream> along random directions of the input and of each parameter, by central
/// differences of order four, against <gradient, direction>.
void check_derivatives(const Grid& mesh, const Sizes& z, const Block::Drop& drop) {
  auto w = make(mesh, z, 3);
  X x = input(mesh, z);
  const auto weights = whole(upstream(mesh, z));
  const auto [y, saved] = Block::forward(w, x, drop);
  const auto [dx, gradients] = Block::backward(w, saved, upstream(mesh, z), drop);
  std::uint64_t seed = 70;
  const auto check = [&](auto& parameter, const auto& gradient) {
    using T = std::remove_cvref_t<decltype(parameter)>;
    const auto slope = whole(gradient);
    const T old = parameter;
    for (int i = 0; i < 2; ++i) {
      const T direction = random<T>(mesh, old.extents(), seed++);
      const auto at = [&](double h) {
        parameter = old + direction * h;
        return dot(whole(Block::forward(w, x, drop).first), weights);
      };
      const double h = 1e-3;
      const double numeric = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
      const double exact = dot(slope, whole(direction));
      parameter = old;
      require(std::abs(numeric - exact) < 2e-8 * (1 + std::abs(exact)),
              "derivative " + std::to_string(numeric) + ", gradient " + std::to_string(exact));
    }
  };
  check(x, dx);
  each([&](auto& parameter, const auto& gradient) { check(parameter, *gradient); }, w, gradients);
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
    CHECK_NOTHROW(on_grid(ranks, [](const Grid& mesh) { check_derivatives(mesh, {}, {}); }));
  }
  CHECK_NOTHROW(on_grid({1, 2}, [](const Grid& mesh) { check_derivatives(mesh, {}, {0.3, 11, 12}); }));
}

TEST_CASE("transformer block: any ranks compute what one rank computes, norm weights and row biases included") {
  const std::vector<Ranks> some{{2, 1}, {1, 2}, {3, 2}, {1, 4}, {2, 4}, {1, 9}};
  for (const Block::Drop& drop : {Block::Drop{}, Block::Drop{0.3, 11, 12}}) {
    const auto one = run(Ranks{1, 1}, {}, drop);
    for (const Ranks ranks : some) {
      CAPTURE(ranks.data);
      CAPTURE(ranks.tensor);
      same(run(ranks, {}, drop), one);
    }
  }
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
    const auto w = make(mesh, z, 3);
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
      const auto w = make(mesh, z, 3);
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
