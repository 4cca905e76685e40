// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "choices.hpp"
#include "meshwise/trace/timeline.hpp"
#include "meshwise/train/adamw.hpp"
#include "meshwise/train/schedule.hpp"
#include "model.hpp"

namespace gpt {

/// How a model is trained.
struct Training {
  AdamWOptions adamw;  ///< the learning rate is the peak
  std::uint64_t steps = 1, warmup = 0;
  double clip = 1.0;  ///< 0: not at all
  double dropout = 0.0;
  std::uint64_t seed = 1;
  Precision precision = Precision::f32;
  Recomputed recompute = Recomputed::none;
  int zero = 0;                  ///< what the data-parallel ranks split: 1 optimizer state, 2 gradients, 3 parameters
  std::size_t bucket_bytes = 0;  ///< consecutive blocks are gathered and reduced at once until they have as many
  std::size_t prefetch = 1;      ///< units that stage 3 gathers ahead
  Initial initial;               ///< empty: initial_values
  Timeline* timeline = nullptr;  ///< of this rank, for what it computes when
};

/// What one step measured; the same on every rank.
struct StepResult {
  double loss = 0;
  double gradient_norm = 0;
  friend bool operator==(const StepResult&, const StepResult&) = default;
};

/// Warms up linearly, then follows half a cosine down to a tenth of the peak.
inline double learning_rate(const Training& t, std::uint64_t step) {
  const double peak = t.adamw.learning_rate;
  return CosineRate{peak, t.warmup, t.steps, 0.1 * peak}(step);
}

/// The stream of dropout in one micro-batch of a step.
inline std::uint64_t dropout_seed(const Training& t, std::uint64_t step, std::size_t micro_batch) {
  return stream_seed(stream_seed(t.seed, 1'000'000 + step), micro_batch);
}

/// A part of a step in the timeline of a rank that has one.
class Phase {
 public:
  Phase(Timeline* timeline, const char* name) {
    if (timeline != nullptr) span_.emplace(*timeline, name);
  }
  Phase(Timeline* timeline, const char* name, std::size_t number) {
    if (timeline != nullptr) span_.emplace(*timeline, name + std::to_string(number));
  }

 private:
  std::optional<Timeline::Span> span_;
};

/// One rank's share of a training run, whatever its precision, stage and blocks. Everything is collective over the mesh.
class Trainer {
 public:
  Trainer() = default;
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;
  virtual ~Trainer() = default;

  /// One step on the micro-batches of one batch: forward and backward of each, sums of gradients, clipping, AdamW. The
  /// loss is the mean over the tokens of all of them, which may be of different sizes.
  virtual StepResult step(std::span<const Batch> micro_batches) = 0;
  StepResult step(const Batch& whole) { return step(std::span(&whole, 1)); }

  /// Waits for parameters that are still on their way after a step, so that what is sent from now on is for other ends.
  virtual void settle() = 0;

  /// The mean loss of a batch, nothing learnt.
  virtual double evaluate(const Batch& sequences) = 0;

  /// The logits after one token of one sequence, whole on every rank.
  virtual std::vector<double> next_logits(const Tokens& tokens, std::size_t position) = 0;

  /// Calls f(name, its elements, whole on every rank) for every parameter, in the order of the model.
  virtual void each_parameter(const std::function<void(const std::string&, const std::vector<double>&)>& f) = 0;
};

/// A trainer with the parameters before the first step. The mesh and the timeline outlive it.
std::unique_ptr<Trainer> make_trainer(const Grid& mesh, const Sizes& sizes, const Training& training);

}  // namespace gpt
