// SPDX-License-Identifier: Apache-2.0
#include "meshwise/train/loss_scale.hpp"

#include <doctest/doctest.h>

#include "../parallel/support.hpp"
#include "meshwise/train/all_finite.hpp"
#include "meshwise/train/clip.hpp"
#include "meshwise/train/global_norm.hpp"
#include "meshwise/train/mixed_precision.hpp"

namespace {

using namespace test;

template <class E, class... Ps>
using Matrix = Tensor<E, Dims<hidden, ffn>, Layout<Grid, Ps...>>;
template <class E, class... Ps>
using Loss = Tensor<E, Dims<>, Layout<Grid, Ps...>>;

template <class E, class T>
concept can_seed = requires(const LossScale<E> scale, const T loss) {
  scale.seed(loss);
};
static_assert(can_seed<float, Loss<float, Partial<dp>>> && can_seed<fp16, Loss<fp16>>);
static_assert(!can_seed<float, Loss<fp16>>, "a float scale may be more than a loss in fp16 can carry");
static_assert(!can_seed<float, Loss<float, Partial<dp, Max>>>);

}  // namespace

TEST_CASE("loss scale: halves at an overflow, doubles after an interval of good steps, within its bounds") {
  LossScale<> scale({.initial = 8, .interval = 3, .least = 2, .most = 16});
  const auto after = [&](bool finite) {
    CHECK(scale.update(finite) == finite);
    return scale.value();
  };
  CHECK(scale.value() == 8);
  CHECK(after(true) == 8);
  CHECK(after(true) == 8);
  CHECK(after(true) == 16);
  for (int i = 0; i < 7; ++i) CHECK(after(true) == 16);
  CHECK(scale.good_steps() == 1);
  CHECK(after(false) == 8);
  CHECK(scale.good_steps() == 0);
  CHECK(after(true) == 8);
  CHECK(after(true) == 8);
  CHECK(after(false) == 4);
  CHECK(after(true) == 4);
  CHECK(after(false) == 2);
  CHECK_THROWS_WITH_AS(static_cast<void>(scale.update(false)), doctest::Contains("least scale"), Error);
  CHECK(scale.value() == 2);
  for (int i = 0; i < 3; ++i) CHECK(scale.update(true));
  CHECK(scale.value() == 4);
}

TEST_CASE("loss scale: goes on from what a checkpoint kept as if there had been none") {
  LossScaleOptions options{.initial = 1024, .interval = 5};
  LossScale<> whole(options);
  for (int i = 0; i < 8; ++i) CHECK(whole.update(true));
  options.initial = whole.value();
  LossScale<> again(options, whole.good_steps());
  for (const bool finite : {true, true, true, false, true}) {
    CHECK(whole.update(finite) == again.update(finite));
    CHECK(whole.value() == again.value());
  }
}

TEST_CASE("loss scale: what the element of the loss can carry is the most, and other numbers are refused") {
  CHECK(LossScale<float>().value() == 65536);
  CHECK(LossScale<bf16>().value() == 65536);
  LossScale<fp16> half({.interval = 1});
  CHECK(half.value() == 32768);
  CHECK(half.update(true));
  CHECK(half.value() == 32768);
  const auto text = [](const LossScaleOptions& options) -> std::string {
    try {
      LossScale<> scale(options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(text({.initial = 1000}).find("initial = 1000") != std::string::npos);
  CHECK(text({.initial = 0}).find("power of two") != std::string::npos);
  CHECK(text({.initial = HUGE_VAL}) != "");
  CHECK(text({.initial = 1, .least = 2}).find("least <= initial <= most") != std::string::npos);
  CHECK(text({.interval = 0}).find("interval") != std::string::npos);
}

TEST_CASE("loss scale: the seed is that of the loss, times the scale") {
  on_grid({2, 2}, [](const Grid& mesh) {
    const LossScale<> scale({.initial = 1024});
    const Loss<float, Partial<dp>> loss(mesh, {});
    const auto seed = scale.seed(loss);
    static_assert(std::is_same_v<decltype(seed), const Loss<float>>, "each rank's share enters the sum once");
    require(seed.local()[0] == 1024, "the scale");
    require(LossScale<fp16>().seed(Loss<fp16>(mesh, {})).local()[0] == 32768, "in fp16");
  });
}

TEST_CASE("loss scale: small gradients live on in fp16, and the scale is taken off once") {
  on_grid({2, 1}, [](const Grid& mesh) {
    using T = Matrix<fp16, Shard<hidden, dp>>;
    const auto gradient = [&](double scale) {  // 3 * 2^-27 is nothing in fp16
      return generate<T>(mesh, {3, 5}, [&](const auto& i) {
        return static_cast<fp16>(static_cast<double>(i.linear % 4) * 0x1p-27 * scale);
      });
    };
    const auto step = [&](double scale) {
      auto w = random<T>(mesh, {3, 5}, 1);
      MasterState<T> state(w);
      const auto g = gradient(scale);
      const Clipped clipped = clip(GlobalNorm<Grid>(mesh).add(g).norm(), HUGE_VAL, scale);
      adamw_step(w, g, state, 1, {.epsilon = 0x1p-27, .weight_decay = 0}, clipped.gradient_scale());
      return whole(state.master);
    };
    const auto before = whole(random<T>(mesh, {3, 5}, 1));
    require(step(1) == before, "without a scale nothing is learnt");
    require(step(1024) != before, "with one it is");
    require(step(1024) == step(32768), "the same from any scale that is large enough");
  });
}

TEST_CASE("loss scale: an overflow on one rank skips the step on all, and leaves everything as it was") {
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{3, 1}, Ranks{2, 3}}) {
    on_grid(ranks, [](const Grid& mesh) {
      using W = Matrix<fp16, Shard<hidden, dp>, Shard<ffn, tp>>;
      using B = Tensor<fp16, Dims<ffn>, Layout<Grid>>;
      LossScale<fp16> scale({.initial = 1024, .interval = 2});
      auto w = random<W>(mesh, {5, 7}, 1);
      auto b = random<B>(mesh, {7}, 2);
      MasterState<W> of_w(w);
      MasterState<B> of_b(b);
      std::uint64_t step = 0;
      const auto everything = [&] {
        std::vector<double> all;
        for (const auto& part : {whole(w), whole(b), whole(of_w.master), whole(of_w.moments.first),
                                 whole(of_w.moments.second), whole(of_b.master), whole(of_b.moments.second)}) {
          all.insert(all.end(), part.begin(), part.end());
        }
        all.push_back(static_cast<double>(step));
        return all;
      };
      // Only the last element of the matrix overflows, at a scale of more than 512: on one rank.
      std::vector<double> scales;
      for (std::uint64_t batch = 0; batch < 6; ++batch) {
        const auto dw = generate<W>(mesh, {5, 7}, [&](const auto& i) {
          return static_cast<fp16>((i.linear == 34 ? 100.0 : 0.01) * scale.value());
        });
        const auto db = generate<B>(mesh, {7}, [&](const auto&) { return static_cast<fp16>(0.01 * scale.value()); });
        const bool finite = AllFinite<Grid>(mesh).add(dw).add(db).agreed();
        const Clipped clipped = clip(GlobalNorm<Grid>(mesh).add(dw).add(db).norm(), 1, scale.value());
        require(clipped.finite() == finite, "the norm knows");
        require(finite == (scale.value() <= 512), "all ranks are told");
        const auto before = everything();
        scales.push_back(scale.value());
        if (scale.update(finite)) {
          ++step;
          adamw_step(w, dw, of_w, step, {}, clipped.gradient_scale());
          adamw_step(b, db, of_b, step, {}, clipped.gradient_scale());
          require(everything() != before, "a step");
        } else {
          require(everything() == before, "no step");
        }
      }
      require(scales == std::vector<double>{1024, 512, 512, 1024, 512, 512}, "found its scale, tried more, came back");
    });
  }
}

TEST_CASE("loss scale: a power of two changes no bit of what is learnt in float") {
  on_grid({2, 2}, [](const Grid& mesh) {
    using T = Matrix<float, Shard<ffn, tp>>;
    const auto train = [&](double scale) {
      auto w = random<T>(mesh, {5, 7}, 1);
      AdamWState<T> state(w);
      for (std::uint64_t step = 1; step <= 4; ++step) {
        const auto g = random<T>(mesh, {5, 7}, 10 + step) * scale;
        const Clipped clipped = clip(GlobalNorm<Grid>(mesh).add(g).norm(), HUGE_VAL, scale);
        adamw_step(w, g, state, step, {}, clipped.gradient_scale());
      }
      return whole(w);
    };
    require(train(65536) == train(1) && train(0x1p-20) == train(1), "the same bits");
  });
}
