// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer.hpp"

namespace gpt {

/// The largest differences between a parallel run and the run of one rank so far.
struct Differences {
  double loss = 0;           ///< relative
  double gradient_norm = 0;  ///< relative
  double parameters = 0;     ///< relative, in the L2 norm over all parameters
  std::int64_t steps = 0;
  double loss_limit = 1e-4, gradient_limit = 1e-4, parameter_limit = 1e-3;

  bool passed() const {
    // Written so that a NaN fails.
    return loss < loss_limit && gradient_norm < gradient_limit && parameters < parameter_limit;
  }
};

/// Trains the same model on one rank beside the parallel one, and compares them after every step.
///
/// Every rank of the mesh takes part; the first one also holds the run of one rank, on a mesh of its own. That keeps and
/// splits nothing: stage 0 of ZeRO, no recomputation.
class Check {
 public:
  /// Collective over the mesh's world.
  Check(const Grid& mesh, const Sizes& sizes, Training training)
      : mesh_(mesh), alone_(mesh.world().split(mesh.world().rank())) {
    if (training.precision == Precision::bf16) {
      // Sums of other parts round otherwise, by 2^-9 of what they are, and small gradients are mostly rounding; a sum that
      // is missing or paid twice is off by half or more.
      worst_.loss_limit = 1e-2;
      worst_.gradient_limit = 0.2;
      worst_.parameter_limit = 2e-2;
    }
    if (!mesh.is_first()) return;
    training.zero = 0;
    training.recompute = Recomputed::none;
    training.timeline = nullptr;
    alone_mesh_.emplace(alone_, std::array{1, 1, 1}, mesh.gemm());
    reference_ = make_trainer(*alone_mesh_, sizes, training);
  }

  bool is_first() const { return reference_ != nullptr; }

  /// After a step of the parallel run: the same step alone, then the comparison. Collective. make: the micro-batches of
  /// the step on a mesh.
  template <class Make>
  void after_step(Trainer& parallel, const StepResult& result, const Make& make) {
    std::vector<std::vector<double>> expected;
    if (reference_) {
      const StepResult alone = reference_->step(make(*alone_mesh_));
      raise(worst_.loss, relative(result.loss, alone.loss));
      raise(worst_.gradient_norm, relative(result.gradient_norm, alone.gradient_norm));
      reference_->each_parameter(
          [&](const std::string&, const std::vector<double>& values) { expected.push_back(values); });
    }
    double difference = 0, size = 0;
    std::size_t at = 0;
    parallel.each_parameter([&](const std::string&, const std::vector<double>& values) {
      if (!reference_) return;
      const std::vector<double>& own = expected[at++];
      for (std::size_t i = 0; i < own.size(); ++i) {
        difference += (values[i] - own[i]) * (values[i] - own[i]);
        size += own[i] * own[i];
      }
    });
    if (reference_) raise(worst_.parameters, std::sqrt(difference) / std::sqrt(std::max(size, 1e-300)));
    ++worst_.steps;
  }

  /// The largest differences; on the first rank only.
  const Differences& worst() const { return worst_; }

 private:
  static double relative(double a, double b) { return std::abs(a - b) / std::max(std::abs(b), 1e-300); }
  static void raise(double& worst, double value) {
    if (!std::isnan(worst) && !(value <= worst)) worst = value;  // a NaN stays
  }

  Grid mesh_;
  Communicator alone_;
  std::optional<Grid> alone_mesh_;
  std::unique_ptr<Trainer> reference_;
  Differences worst_;
};

}  // namespace gpt
