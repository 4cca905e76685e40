// SPDX-License-Identifier: Apache-2.0
// Data parallelism: each rank learns from its own samples, the gradients are summed in buckets, and all ranks take the
// same step. Linear regression, because we know what it must find.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numbers>
#include <stdexcept>
#include <string>
#include <vector>

#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/core/random.hpp"
#include "meshwise/parallel/data.hpp"
#include "meshwise/tensor/contract.hpp"
#include "meshwise/tensor/elementwise.hpp"
#include "meshwise/tensor/generate.hpp"
#include "meshwise/tensor/reductions.hpp"
#include "meshwise/tensor/value.hpp"
#include "meshwise/train/adamw.hpp"
#include "support/command_line.hpp"

struct feature : meshwise::dim {};

namespace {

using namespace meshwise;

using Grid = Mesh<dp>;
using Samples = Tensor<float, Dims<batch, feature>, Layout<Grid, Shard<batch, dp>>>;
using Weights = Tensor<float, Dims<feature>, Layout<Grid>>;  // replicated
using Scalar = Tensor<float, Dims<>, Layout<Grid>>;

constexpr std::size_t samples = 1000, features = 12;
constexpr int steps = 400;

float true_weight(std::size_t i) { return static_cast<float>(i % 5) - 1.5F; }
constexpr float true_bias = 0.75F;

void learn(Communicator& world) {
  const Grid mesh(world, {world.size()});
  const auto x = generate<Samples>(mesh, {samples, features}, [](const auto& i) { return normal(7, i.linear); });
  const auto truth = generate<Weights>(mesh, {features}, [](const auto& i) { return true_weight(i.linear); });
  const auto bias = generate<Scalar>(mesh, {}, [](const auto&) { return true_bias; });
  const auto y = contract<feature>(x, truth) + bias;  // Dims<batch>, Shard<batch, dp>

  Weights w(mesh, {features});  // zeros
  Scalar b(mesh, {});
  AdamWState<Weights> w_state(w);
  AdamWState<Scalar> b_state(b);
  AdamWOptions options;
  options.weight_decay = 0;
  GradientBuckets<dp, float, Grid> buckets(mesh, 1 << 20);
  const auto dw = buckets.expect(w);
  const auto db = buckets.expect(b);
  const double mean = 1.0 / static_cast<double>(samples);  // of all samples, not of this rank's
  const Traffic start = mesh.along<dp>().traffic();
  float first_loss = 0, last_loss = 0;

  for (int step = 1; step <= steps; ++step) {
    const auto error = contract<feature>(x, w) + b - y;
    const auto loss = convert<Replicate<dp>>(sum<batch>(error * error) * mean);  // all-reduce
    last_loss = value(loss);
    if (step == 1) first_loss = last_loss;

    // Sums over a sharded dim are Partial<dp>: they owe a sum over the ranks, and adamw_step would not take them.
    buckets.add(db, sum<batch>(error) * (2 * mean));
    buckets.add(dw, contract<batch>(x, error) * (2 * mean));  // the last one: one all-reduce for both starts
    buckets.finish();

    options.learning_rate = 0.05 * (1 + std::cos(std::numbers::pi * step / steps));
    adamw_step(w, buckets.take(dw), w_state, static_cast<std::uint64_t>(step), options);
    adamw_step(b, buckets.take(db), b_state, static_cast<std::uint64_t>(step), options);
    if (world.rank() == 0 && (step == 1 || step % 50 == 0)) std::printf("step %3d  loss %.3e\n", step, last_loss);
  }

  std::vector<std::uint64_t> volume{(mesh.along<dp>().traffic() - start).volume / steps};  // bytes to be received
  all_reduce(world, volume);
  const std::size_t formula = 2 * static_cast<std::size_t>(world.size() - 1) * (features + 2) * sizeof(float);
  float farthest = std::abs(b.local()[0] - true_bias);
  for (std::size_t i = 0; i < features; ++i) {
    farthest = std::max(farthest, std::abs(w.local()[i] - true_weight(i)));
  }
  // The weights were never sent, yet all ranks have the same: equal sums, equal steps.
  std::vector<float> least(w.local().begin(), w.local().end()), most = least;
  all_reduce<Min>(world, least);
  all_reduce<Max>(world, most);
  if (world.rank() == 0) {
    std::printf("farthest from the true weights: %.1e\n", farthest);
    std::printf("volume per step: %llu bytes, 2 (n-1) times gradients and loss is %zu\n",
                static_cast<unsigned long long>(volume[0]), formula);
  }
  if (volume[0] != formula) throw std::runtime_error("the bytes differ from the formula");
  if (least != most) throw std::runtime_error("the ranks have different weights");
  if (!(farthest < 1e-4F && last_loss < 1e-6F * first_loss)) throw std::runtime_error("it has not learnt the weights");
}

}  // namespace

int main(int count, char** arguments) {
  return examples::main(count, arguments, "Linear regression on samples that are split over the ranks.", learn);
}
