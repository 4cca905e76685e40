// SPDX-License-Identifier: Apache-2.0
#include "meshwise/train/mixed_precision.hpp"

#include <doctest/doctest.h>

#include "../parallel/support.hpp"
#include "meshwise/tensor/elementwise.hpp"

namespace {

using namespace test;

template <class E, class... Ps>
using Matrix = Tensor<E, Dims<hidden, ffn>, Layout<Grid, Ps...>>;

template <class P, class G>
concept can_step = requires(P p, const G g, MasterState<P>& s) {
  adamw_step(p, g, s, 1, AdamWOptions{});
};
static_assert(can_step<Matrix<bf16>, Matrix<bf16>> && can_step<Matrix<fp16>, Matrix<fp16>>);
static_assert(can_step<Matrix<bf16>, Matrix<float>>, "gradients may be in the element of the master");
static_assert(!can_step<Matrix<bf16>, Matrix<fp16>> && !can_step<Matrix<bf16>, Matrix<double>>);
static_assert(!can_step<Matrix<bf16>, Matrix<bf16, Partial<dp>>>, "a sum that is owed is no gradient");
static_assert(!can_step<Matrix<bf16>, Matrix<float, Partial<dp>>>);
static_assert(!can_step<Matrix<bf16, Partial<dp>>, Matrix<bf16, Partial<dp>>>);
static_assert(!std::is_constructible_v<MasterState<Matrix<float>>, const Matrix<float>&>);

template <class T>
std::vector<double> rounded(const std::vector<double>& values) {
  std::vector<double> result;
  for (const double v : values) result.push_back(static_cast<float>(static_cast<T>(static_cast<float>(v))));
  return result;
}

/// The master goes the way of a float parameter with the same gradients, to the bit, and the parameter is its rounding.
template <class E, class... Ps>
void as_float(const Grid& mesh, std::size_t rows, std::size_t columns) {
  using T = Matrix<E, Ps...>;
  using F = Matrix<float, Ps...>;
  auto w = random<T>(mesh, {rows, columns}, 1);
  MasterState<T> state(w);
  auto f = map([](float x) { return x; }, state.master);
  static_assert(std::is_same_v<decltype(f), F>);
  AdamWState<F> moments(f);
  require(whole(state.master) == whole(w), "the master begins as the parameter");
  for (std::uint64_t step = 1; step <= 7; ++step) {
    const auto g = random<T>(mesh, {rows, columns}, 10 + step, 0.1);
    const auto same = MasterState<T>(g).master;
    adamw_step(w, g, state, step, {}, 0.25);
    adamw_step(f, same, moments, step, {}, 0.25);
    require(whole(state.master) == whole(f), "the master is the float parameter");
    require(whole(w) == rounded<E>(whole(f)), "the parameter is the rounded master");
    require(whole(state.parameter()) == whole(w), "and can be had from it");
    require(whole(state.moments.first) == whole(moments.first), "first moment");
    require(whole(state.moments.second) == whole(moments.second), "second moment");
  }
}

}  // namespace

TEST_CASE("mixed precision: the master is a float parameter, whatever the layout, element and sizes") {
  on_grid({2, 3}, [](const Grid& mesh) {
    for (const auto& [rows, columns] : {std::pair<std::size_t, std::size_t>{5, 7}, {1, 1}, {0, 3}, {2, 2}}) {
      as_float<bf16>(mesh, rows, columns);
      as_float<fp16, Shard<ffn, tp>>(mesh, rows, columns);
      as_float<bf16, Shard<hidden, dp>, Shard<ffn, tp>>(mesh, rows, columns);
      as_float<bf16, Shard<ffn, dp, tp>>(mesh, rows, columns);
    }
  });
}

TEST_CASE("mixed precision: what rounds away in bf16 adds up in the master") {
  on_grid({1, 2}, [](const Grid& mesh) {
    using T = Matrix<bf16, Shard<ffn, tp>>;
    const AdamWOptions options{.learning_rate = 1e-4, .epsilon = 0, .weight_decay = 0};
    const auto ones = [](const auto&) { return bf16(1.0F); };
    auto w = generate<T>(mesh, {2, 3}, ones), alone = w;
    const auto g = generate<T>(mesh, {2, 3}, ones);
    MasterState<T> state(w);
    AdamWState<T> moments(alone);
    for (std::uint64_t step = 1; step <= 100; ++step) {  // each step is 1e-4, half a unit of bf16 below 1 is 2e-3
      adamw_step(w, g, state, step, options);
      adamw_step(alone, g, moments, step, options);
    }
    require(whole(alone) == std::vector<double>(6, 1.0), "bf16 alone stands still");
    require_near(whole(state.master), std::vector<double>(6, 0.99), 1e-5, "the master has gone a hundred steps");
    require(whole(w) == rounded<bf16>(std::vector<double>(6, 0.99)), "and takes the parameter along");
  });
}

TEST_CASE("mixed precision: the parameter is only written: what somebody puts there does not reach the master") {
  on_grid({1, 1}, [](const Grid& mesh) {
    using T = Matrix<bf16>;
    auto w = random<T>(mesh, {3, 5}, 1);
    const T before = w;
    const auto old = whole(before);
    MasterState<T> state(w);
    const T zero(mesh, {3, 5});
    for (auto& x : w.mutable_local()) x = bf16(7.0F);
    adamw_step(w, zero, state, 1, {.weight_decay = 0});
    require(whole(w) == old, "the master's value is back");
    require(whole(before) == old, "a copy is a value");
  });
}

TEST_CASE("mixed precision: 16 bytes per parameter, 4 + 12/n where the state is split, by category") {
  for (const int n : {1, 2, 3, 4}) {
    on_grid({n, 1}, [&](const Grid& mesh) {
      const auto used = [&](Category c) { return mesh.memory().usage(c).current; };
      const std::size_t rows = 12, columns = 5, elements = rows * columns, ranks = static_cast<std::size_t>(n);
      using Whole = Matrix<bf16>;
      using Own = Matrix<bf16, Shard<hidden, dp>>;
      const std::size_t parameters = used(Category::parameters), gradients = used(Category::gradients),
                        optimizer = used(Category::optimizer), others = used(Category::activations);
      const auto added = [&] {
        require(used(Category::activations) == others, "nothing elsewhere");
        return std::vector<std::size_t>{used(Category::parameters) - parameters, used(Category::gradients) - gradients,
                                        used(Category::optimizer) - optimizer};
      };
      const auto made = [&]<class T>(std::type_identity<T>, Category c) {
        const CategoryScope scope(mesh.memory(), c);
        return T(mesh, {rows, columns});
      };
      {
        auto w = made(std::type_identity<Whole>{}, Category::parameters);
        const auto g = made(std::type_identity<Whole>{}, Category::gradients);
        {
          MasterState<Whole> state(w);
          adamw_step(w, g, state, 1, {});
          require(added() == std::vector{2 * elements, 2 * elements, 12 * elements}, "2 + 2 + 4 + 4 + 4");
        }
        const MasterState<Own> state(view_as<Shard<hidden, dp>>(w));
        require(added() == std::vector{2 * elements, 2 * elements, 12 * elements / ranks}, "4 + 12/n");
      }
      auto w = made(std::type_identity<Own>{}, Category::parameters);
      const auto g = made(std::type_identity<Own>{}, Category::gradients);
      MasterState<Own> state(w);
      adamw_step(w, g, state, 1, {});
      require(added() == std::vector{2 * elements / ranks, 2 * elements / ranks, 12 * elements / ranks}, "16/n");
      const auto wide = made(std::type_identity<Matrix<float, Shard<hidden, dp>>>{}, Category::gradients);
      adamw_step(w, wide, state, 2, {});
      require(added()[1] == (2 + 4) * elements / ranks, "gradients of the master's element take 4");
    });
  }
}

TEST_CASE("mixed precision: a split state gives the bits of a whole one") {
  on_grid({4, 1}, [](const Grid& mesh) {
    using Whole = Matrix<bf16>;
    auto w = random<Whole>(mesh, {5, 7}, 1);
    auto own = view_as<Shard<hidden, dp>>(w);
    MasterState<Whole> state(w);
    MasterState<decltype(own)> part(own);
    for (std::uint64_t step = 1; step <= 5; ++step) {
      const auto g = random<Whole>(mesh, {5, 7}, 1 + step, 0.1);
      adamw_step(w, g, state, step, {});
      adamw_step(own, view_as<Shard<hidden, dp>>(g), part, step, {});
    }
    require(whole(own) == whole(w), "parameters");
    require(whole(part.master) == whole(state.master), "masters");
  });
}

TEST_CASE("mixed precision: a master from full precision, and gradients of other extents") {
  on_grid({1, 1}, [](const Grid& mesh) {
    using T = Matrix<bf16>;
    const auto values = random<Matrix<float>>(mesh, {3, 5}, 1);
    MasterState<T> state(values);
    auto w = state.parameter();
    require(whole(w) == rounded<bf16>(whole(values)), "rounded once");
    adamw_step(w, T(mesh, {3, 5}), state, 1, {.weight_decay = 0});
    require(whole(state.master) == whole(values), "not by way of bf16");
    std::string text;
    try {
      adamw_step(w, T(mesh, {3, 6}), state, 2, {});
    } catch (const Error& error) {
      text = error.what();
    }
    require(text.find("adamw_step") != std::string::npos && text.find("ffn = 6") != std::string::npos, text);
  });
}
