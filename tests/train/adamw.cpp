// SPDX-License-Identifier: Apache-2.0
#include "meshwise/train/adamw.hpp"

#include <doctest/doctest.h>

#include "../parallel/support.hpp"

namespace {

using namespace test;

template <class E, class... Ps>
using Matrix = Tensor<E, Dims<hidden, ffn>, Layout<Grid, Ps...>>;

// The formulas, element by element, in double.
struct Plain {
  AdamWOptions options;
  std::vector<double> w, m = std::vector<double>(w.size()), v = m;
  int steps = 0;

  void step(const std::vector<double>& gradient, double scale) {
    ++steps;
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double g = gradient[i] * scale;
      m[i] = options.beta1 * m[i] + (1 - options.beta1) * g;
      v[i] = options.beta2 * v[i] + (1 - options.beta2) * g * g;
      const double unbiased_m = m[i] / (1 - std::pow(options.beta1, steps));
      const double unbiased_v = v[i] / (1 - std::pow(options.beta2, steps));
      w[i] -= options.learning_rate * options.weight_decay * w[i];
      w[i] -= options.learning_rate * unbiased_m / (std::sqrt(unbiased_v) + options.epsilon);
    }
  }
};

template <class E, class... Ps>
void as_plain(const Grid& mesh, std::size_t rows, std::size_t columns, const AdamWOptions& options, double bound) {
  using T = Matrix<E, Ps...>;
  auto w = random<T>(mesh, {rows, columns}, 1);
  AdamWState<T> state(w);
  Plain plain{options, whole(w)};
  for (std::uint64_t step = 1; step <= 7; ++step) {
    const auto g = random<T>(mesh, {rows, columns}, 10 + step, 0.1);
    const double scale = step % 3 == 0 ? 0.125 : 1.0;
    plain.step(whole(g), scale);
    adamw_step(w, g, state, step, options, scale);
    require_near(whole(w), plain.w, bound, "parameter", 0.1);
    require_near(whole(state.first), plain.m, bound, "first moment", 0.1);
    require_near(whole(state.second), plain.v, bound, "second moment", 0.1);
  }
}

template <class E, class... Ps>
double after_one_step(const Grid& mesh, double gradient, const AdamWOptions& options) {
  using T = Matrix<E, Ps...>;
  T w(mesh, {1, 1}), g(mesh, {1, 1});
  for (auto& x : w.mutable_local()) x = E(2);
  for (auto& x : g.mutable_local()) x = static_cast<E>(gradient);
  AdamWState<T> state(w);
  adamw_step(w, g, state, 1, options);
  return whole(w)[0];
}

// A sum that is still owed cannot be a gradient, and a parameter is never a Partial.
template <class P, class G>
concept can_step = requires(P p, const G g, AdamWState<P> s) {
  adamw_step(p, g, s, 1, AdamWOptions{});
};
static_assert(can_step<Matrix<float>, Matrix<float>>);
static_assert(!can_step<Matrix<float>, Matrix<float, Partial<dp>>>);
static_assert(!can_step<Matrix<float, Shard<ffn, tp>>, Matrix<float>>);
static_assert(!can_step<Matrix<float, Partial<dp>>, Matrix<float, Partial<dp>>>);

}  // namespace

TEST_CASE("AdamW: the plain formulas, whatever the layout, sizes and options") {
  const AdamWOptions usual, strong{0.1, 0.8, 0.99, 1e-3, 0.5}, plain_sgd_like{0.01, 0, 0, 1, 0};
  for (const AdamWOptions& options : {usual, strong, plain_sgd_like}) {
    on_grid({2, 3}, [&](const Grid& mesh) {
      for (const auto& [rows, columns] : {std::pair<std::size_t, std::size_t>{5, 7}, {1, 1}, {0, 3}, {2, 2}}) {
        as_plain<double>(mesh, rows, columns, options, 1e-14);
        as_plain<double, Shard<ffn, tp>>(mesh, rows, columns, options, 1e-14);
        as_plain<double, Shard<hidden, dp>, Shard<ffn, tp>>(mesh, rows, columns, options, 1e-14);
      }
    });
  }
}

TEST_CASE("AdamW: float rounds, bf16 keeps its moments in float") {
  on_grid({1, 2}, [](const Grid& mesh) {
    as_plain<float, Shard<ffn, tp>>(mesh, 5, 7, {}, 2e-6);
    using B = Matrix<bf16>;
    static_assert(std::is_same_v<AdamWState<B>::Moment::element, float>);
    require(std::abs(after_one_step<bf16>(mesh, 0.5, {.learning_rate = 0.5, .weight_decay = 0}) - 1.5) < 0.01, "bf16");
  });
}

TEST_CASE("AdamW: laws of the first step and of decay") {
  on_grid({1, 1}, [](const Grid& mesh) {
    const auto first = [&](double gradient, const AdamWOptions& o) {
      return after_one_step<double>(mesh, gradient, o);
    };
    for (const double g : {1e-3, 1.0, 1e3}) {
      require_near({first(g, {.learning_rate = 0.01, .epsilon = 0, .weight_decay = 0})}, {1.99}, 1e-14, "by the rate");
      require_near({first(-g, {.learning_rate = 0.01, .epsilon = 0, .weight_decay = 0})}, {2.01}, 1e-14, "upwards");
    }
    require_near({first(0, {.learning_rate = 0.01, .weight_decay = 0.5})}, {2 * (1 - 0.005)}, 1e-15, "decay alone");
    require(first(0, {.weight_decay = 0}) == 2, "no gradient and no decay change nothing");
  });
}

TEST_CASE("AdamW: replicas stay bit-identical and copies taken before are untouched") {
  std::vector<std::vector<float>> pieces(4);
  on_grid({4, 1}, [&](const Grid& mesh) {
    using T = Matrix<float>;
    auto w = random<T>(mesh, {5, 7}, 1);
    const T before = w;
    const auto old = piece(before);
    AdamWState<T> state(w);
    for (std::uint64_t step = 1; step <= 3; ++step) adamw_step(w, random<T>(mesh, {5, 7}, step), state, step, {});
    require(piece(before) == old, "a copy is a value");
    pieces[static_cast<std::size_t>(mesh.coordinate<dp>())] = piece(w);
  });
  for (const auto& p : pieces) CHECK(p == pieces[0]);
}

TEST_CASE("AdamW: the moments are counted as optimizer state, two of the accumulate type") {
  on_grid({1, 2}, [](const Grid& mesh) {
    const auto used = [&](Category c) { return mesh.memory().usage(c).current; };
    const auto w = random<Matrix<bf16, Shard<ffn, tp>>>(mesh, {5, 8}, 1);
    const std::size_t before = used(Category::optimizer), others = used(Category::activations);
    const AdamWState<Matrix<bf16, Shard<ffn, tp>>> state(w);
    require(used(Category::optimizer) - before == 2 * 5 * 4 * sizeof(float), "two floats per element held");
    require(used(Category::activations) == others, "and nothing else");
    for (float m : state.first.local()) require(m == 0, "zeros");
  });
}

TEST_CASE("AdamW: a gradient of other extents is an error that names both") {
  std::string text;
  try {
    on_grid({1, 1}, [](const Grid& mesh) {
      Matrix<float> w(mesh, {5, 7});
      AdamWState<Matrix<float>> state(w);
      adamw_step(w, Matrix<float>(mesh, {5, 8}), state, 1, {});
    });
  } catch (const Error& error) {
    text = error.what();
  }
  CHECK(text.find("adamw_step") != std::string::npos);
  CHECK(text.find("ffn = 7") != std::string::npos);
  CHECK(text.find("ffn = 8") != std::string::npos);
}
