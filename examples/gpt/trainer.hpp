// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
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
      : mesh_(mesh),
        sizes_(sizes),
        training_(training),
        parameters_(M::make(mesh, sizes, training.seed)),
        over_tp_(mesh, training.bucket_bytes),
        over_dp_(mesh, training.bucket_bytes) {
    moments_.blocks.resize(sizes.layers);
    places_.blocks.resize(sizes.layers);
    each(
        [&]<class T>(const std::string&, const T& p, Moments<T>& m, Places<T>& place) {
          m.emplace(p);
          if constexpr (owes_over_tp<T>) place.over_tp = over_tp_.template expect<OwedOverDp<T>>(p.extents());
          place.over_dp = over_dp_.expect(p);
        },
        parameters_, moments_, places_);
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
  using OverTp = GradientBuckets<tp, E, Grid>;
  using OverDp = GradientBuckets<dp, E, Grid>;
  template <class T>
  using OwedOverDp = decltype(view_as<Partial<dp>>(std::declval<const T&>()));
  /// Every rank along tp has seen its own tokens only where it has the whole parameter: in norms and row biases.
  template <class T>
  static constexpr bool owes_over_tp = std::is_same_v<placement_of<typename T::layout, tp>, Replicate<tp>>;
  /// Where the gradient of a parameter is in the buckets.
  template <class T>
  struct Places {
    std::optional<typename OverTp::template Ticket<OwedOverDp<T>>> over_tp;
    std::optional<typename OverDp::template Ticket<T>> over_dp;
  };

  /// Pays what the gradients owe: first the few that owe a sum over tp, then all of them over dp, in buckets.
  ModelOf<Settled, E> settle(typename M::Gradients owed) {
    each(
        [&]<class T>(const std::string&, const Places<T>& place, auto& gradient) {
          if constexpr (owes_over_tp<T>) {
            over_tp_.add(*place.over_tp, *gradient);
            gradient.reset();
          }
        },
        places_, owed);
    over_tp_.finish();
    each(
        [&]<class T>(const std::string&, const Places<T>& place, auto& gradient) {
          if constexpr (owes_over_tp<T>) {
            over_dp_.add(*place.over_dp, over_tp_.take(*place.over_tp));
          } else {
            over_dp_.add(*place.over_dp, *gradient);
            gradient.reset();
          }
        },
        places_, owed);
    over_dp_.finish();
    ModelOf<Settled, E> settled;
    settled.blocks.resize(sizes_.layers);
    each([&](const std::string&, const auto& place, auto& result) { result = over_dp_.take(*place.over_dp); }, places_,
         settled);
    return settled;
  }

  Grid mesh_;
  Sizes sizes_;
  Training training_;
  typename M::Parameters parameters_;
  ModelOf<Moments, E> moments_;
  ModelOf<Places, E> places_;
  OverTp over_tp_;
  OverDp over_dp_;
  std::uint64_t step_ = 0;
};

}  // namespace gpt
