// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <optional>

#include "meshwise/parallel/data.hpp"
#include "meshwise/tensor/value.hpp"
#include "meshwise/train/adamw.hpp"
#include "meshwise/train/global_norm.hpp"
#include "model.hpp"

namespace gpt {

template <class T>
using Settled = std::optional<T>;
template <class T>
using Moments = std::optional<AdamWState<T>>;

/// How a model is trained.
struct Training {
  AdamWOptions adamw;  ///< the learning rate is the peak
  std::uint64_t steps = 1, warmup = 0;
  double clip = 1.0;
  double dropout = 0.0;
  std::uint64_t seed = 1;
  std::size_t bucket_bytes = std::size_t{4} << 20;
};

/// What one step measured; the same on every rank.
struct StepResult {
  double loss = 0;
  double gradient_norm = 0;
};

/// Warms up linearly, then follows half a cosine down to a tenth of the peak.
inline double learning_rate(const Training& t, std::uint64_t step) {
  const double peak = t.adamw.learning_rate;
  if (step <= t.warmup)
    return peak * static_cast<double>(step) / static_cast<double>(std::max<std::uint64_t>(t.warmup, 1));
  const double span = static_cast<double>(std::max<std::uint64_t>(t.steps, t.warmup + 1) - t.warmup);
  const double done = std::min(1.0, static_cast<double>(step - t.warmup) / span);
  return peak * (0.1 + 0.45 * (1.0 + std::cos(3.14159265358979323846 * done)));
}

/// One rank's share of a training run.
template <class E>
class Trainer {
 public:
  using M = Model<E>;
  using Tokens = typename M::Tokens;

  Trainer(const Grid& mesh, const Sizes& sizes, const Training& training)
      : mesh_(mesh), sizes_(sizes), training_(training), parameters_(M::make(mesh, sizes, training.seed)) {
    moments_.blocks.resize(sizes.layers);
    each([]<class T>(const std::string&, const T& p, Moments<T>& m) { m.emplace(p); }, parameters_, moments_);
  }

  const typename M::Parameters& parameters() const { return parameters_; }

  /// One step on a batch: forward, backward, sums of gradients, clipping, AdamW. Collective over the mesh.
  StepResult step(const Tokens& tokens, const Tokens& targets) {
    ++step_;
    const typename M::Drop drop{training_.dropout, stream_seed(training_.seed, 1'000'000 + step_)};
    auto [logits, saved] = M::forward(parameters_, tokens, drop);
    auto loss = M::loss(logits, targets, static_cast<double>(targets.size()));
    StepResult result;
    result.loss = static_cast<double>(value(convert<Replicate<dp>>(loss.loss)));

    const CategoryScope scope(mesh_.memory(), Category::gradients);
    auto owed = M::backward(parameters_, std::move(saved), tokens, targets, std::move(loss), drop);
    auto gradients = settle(std::move(owed));

    GlobalNorm<Grid> norm(mesh_);
    each([&](const std::string&, const auto& g) { norm.add(*g); }, gradients);
    result.gradient_norm = norm.norm();
    const double scale =
        training_.clip > 0 && result.gradient_norm > training_.clip ? training_.clip / result.gradient_norm : 1.0;

    AdamWOptions options = training_.adamw;
    options.learning_rate = learning_rate(training_, step_);
    each(
        [&](const std::string& name, auto& p, const auto& g, auto& m) {
          AdamWOptions own = options;
          if (!is_weight(name)) own.weight_decay = 0;
          adamw_step(p, *g, *m, step_, own, scale);
        },
        parameters_, gradients, moments_);
    return result;
  }

  /// The mean loss of a batch, nothing learnt. Collective over the mesh.
  double evaluate(const Tokens& tokens, const Tokens& targets) const {
    const auto logits = M::forward(parameters_, tokens, {}).first;
    const auto loss = M::loss(logits, targets, static_cast<double>(targets.size()));
    return static_cast<double>(value(convert<Replicate<dp>>(loss.loss)));
  }

  /// The logits after the last token of one sequence, whole on every rank. Collective over the mesh.
  std::vector<E> next_logits(const Tokens& tokens, std::size_t position) const {
    const auto logits = convert<Replicate<tp>, Replicate<dp>>(M::forward(parameters_, tokens, {}).first);
    const E* row = logits.local().data() + position * sizes_.vocab;
    return std::vector<E>(row, row + sizes_.vocab);
  }

 private:
  /// Pays what the gradients owe: first the few that owe a sum over tp, then all of them over dp, in buckets.
  ModelOf<Settled, E> settle(typename M::Gradients owed) const {
    ModelOf<Settled, E> settled;
    settled.blocks.resize(sizes_.layers);
    GradientBuckets<tp, E, Grid> over_tp(mesh_, training_.bucket_bytes);
    GradientBuckets<dp, E, Grid> over_dp(mesh_, training_.bucket_bytes);
    std::vector<std::function<void()>> after_tp, after_dp;
    const auto reduce_over_dp = [&]<class T>(T gradient, auto& result) {
      const auto ticket = over_dp.add(std::move(gradient));
      after_dp.push_back([&over_dp, &result, ticket] { result = over_dp.take(ticket); });
    };
    each(
        [&](const std::string&, auto& gradient, auto& result) {
          using T = typename std::remove_reference_t<decltype(gradient)>::value_type;
          if constexpr (std::is_same_v<placement_of<typename T::layout, tp>, Partial<tp>>) {
            const auto ticket = over_tp.add(std::move(*gradient));
            after_tp.push_back([&, ticket] { reduce_over_dp(over_tp.take(ticket), result); });
          } else {
            after_tp.push_back([&] { reduce_over_dp(std::move(*gradient), result); });
          }
        },
        owed, settled);
    over_tp.flush();
    for (const auto& next : after_tp) next();
    over_dp.flush();
    for (const auto& next : after_dp) next();
    return settled;
  }

  Grid mesh_;
  Sizes sizes_;
  Training training_;
  typename M::Parameters parameters_;
  ModelOf<Moments, E> moments_;
  std::uint64_t step_ = 0;
};

}  // namespace gpt
